//! The arguments of the command. Their comments are the help texts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use diana_import::REGISTRY;
use diana_policy::ModuleKind;

use crate::advice;

const HELP: &str = "\
Examples:
  diana check rules.yaml
  diana explain rules.yaml --url /login -H 'x-account-id: ada'
  diana replay rules.yaml access.log
  diana man | man -l -

Exit status: 0 fine, 1 the rules have problems, 2 the input is unusable.";
const CHECK_HELP: &str = "\
Examples:
  diana check rules.yaml deploy/
  helm template diana charts/diana -f values.yaml | diana check -
  diana check --accept chosen-key --accept local-scope rules.yaml
  diana check --format sarif deploy/ > diana.sarif

Exit status: 0 fine, 1 the rules have problems, 2 the input is unusable.";
const COPY_HELP: &str = "\
Example:
  diana copy /libdiana-0.2.0.so /etc/diana";
const EXPLAIN_HELP: &str = "\
Examples:
  diana explain rules.yaml --url /login --method POST -H 'x-account-id: ada' --address 192.0.2.7
  diana explain rules.yaml --url /login --times 6 --at 2026-11-24T21:38:34Z --format json

Exit status: 0 fine, 1 the rules have problems, 2 the input is unusable.";
const IMPORT_HELP: &str = "\
Examples:
  kubectl get ingress,configmap -A -o yaml | diana import - -o rules.yaml
  diana import deploy/ --fleet 3
  diana import manifests.yaml --from ingress-nginx --format json

Exit status: 0 complete, 2 the input is unusable, 3 the rules lack a part of the input.";
const REPLAY_HELP: &str = "\
Examples:
  diana replay rules.yaml access.log --set header:x-account-id=14
  zcat access.log.*.gz | diana replay rules.yaml - --against other.yaml --html report.html

Exit status: 0 fine, 1 the rules have problems, 2 the input is unusable or truncated, 130 interrupted.";
const SCHEMA_HELP: &str = "\
Example:
  diana schema > limits.schema.json";
const READY_HELP: &str = "\
Example:
  diana ready --address 127.0.0.1:8080

Exit status: 0 ready, 1 there are no rules to serve, 2 the server does not answer.";
const SERVE_HELP: &str = "\
Example:
  diana serve --rules rules.yaml --modules modules --listen 127.0.0.1:8080

Exit status: 0 ended by a signal, 2 the modules, the certificate or the address are unusable.";
const SUGGEST_HELP: &str = "\
Examples:
  diana suggest access.log --url /api
  diana suggest access.log --actor header:x-tenant --set header:x-tenant=14 --unit hour --refuse 1%

Exit status: 0 fine, 1 the rules have problems, 2 the input is unusable or truncated, 130 interrupted.";
const TIME_ZONE_HELP: &str = "\
Example:
  diana time-zone Europe/Berlin";
const WHY_HELP: &str = "\
Examples:
  curl -si -H \"x-diana-explain: $TOKEN\" https://example.com/login | diana why
  diana why response.txt

Exit status: 0 fine, 2 no explanation found.";
const COMPLETIONS_HELP: &str = "\
Example:
  source <(diana completions bash)";
const MAN_HELP: &str = "\
Example:
  diana man | man -l -";

/// Rate limits for Envoy and Istio: check, explain and replay rules before a gateway applies them.
#[derive(Debug, Parser)]
#[command(name = "diana", version, after_help = HELP)]
pub struct Arguments {
    /// When to colour the output; by default on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find every problem in rules, and settings that are probably unintended
    Check(CheckArguments),
    /// Copy a file into a folder, as an init container that brings the dynamic module
    #[command(after_help = COPY_HELP)]
    Copy {
        /// The file, such as the library in the image of the companion
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The folder, such as a volume that the proxy mounts
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Explain the decision about one request, and why other rules do not apply
    Explain(ExplainArguments),
    /// Convert the limits of another program, and list what differs
    Import(ImportArguments),
    /// Ask `diana serve` on this machine whether it is ready, and print its problems
    Ready(ReadyArguments),
    /// Show how rules would have limited the requests of an access log
    Replay(ReplayArguments),
    /// Print the JSON Schema of rules, for editors
    #[command(after_help = SCHEMA_HELP)]
    Schema {
        /// Print the CustomResourceDefinition of LimitPolicy instead
        #[arg(long)]
        crd: bool,
    },
    /// Serve rules and modules to gateways over HTTP
    Serve(ServeArguments),
    /// Suggest a limit from the real traffic in an access log
    Suggest(Suggest),
    /// Print the value of `time_zone` for a time zone such as Europe/Berlin
    #[command(hide = true, after_help = TIME_ZONE_HELP)]
    TimeZone {
        /// Name of the time zone
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Show the explanation in a gateway's response as a table
    Why(WhyArguments),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page; `diana man | man -l -` shows it
    #[command(after_help = MAN_HELP)]
    Man,
}

/// Find every problem in rules, and settings that are probably unintended.
///
/// Rules are found in plain files of YAML or JSON, and in manifests: Envoy's own configuration
/// (StringValue and Struct), EnvoyFilter, WasmPlugin, EnvoyExtensionPolicy, ConfigMap, List.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArguments {
    /// Files of YAML or JSON; folders, of which each `.yaml`, `.yml` and `.json` with rules is
    /// read; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Leave out advice with this identifier, which stands before its message; repeat it for others
    #[arg(long, value_name = "ADVICE", value_delimiter = ',', value_parser = PossibleValuesParser::new(advice::ids()), hide_possible_values = true)]
    pub accept: Vec<String>,
    /// The form of the module that reads the rules; by default native in a filter of the dynamic module,
    /// and otherwise wasm, with advice about what only the native module refuses
    #[arg(long, value_enum)]
    pub host: Option<CheckedHost>,
}

/// The form of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckedHost {
    /// The wasm module
    Wasm,
    /// The dynamic module
    Native,
}

impl From<CheckedHost> for ModuleKind {
    fn from(host: CheckedHost) -> ModuleKind {
        match host {
            CheckedHost::Wasm => ModuleKind::Wasm,
            CheckedHost::Native => ModuleKind::Native,
        }
    }
}

/// Explain the decision about one request, and why other rules do not apply.
///
/// The request is sent to a new gateway with one worker. `global` rules are counted by that
/// gateway.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub struct ExplainArguments {
    /// The rules: a file in which `diana check` finds rules in one place
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Path with query, or the whole URL
    #[arg(long)]
    pub url: String,
    /// HTTP method
    #[arg(long, default_value = "GET")]
    pub method: String,
    /// Request header, such as `x-account-id: ada`
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Client address
    #[arg(long)]
    pub address: Option<String>,
    /// Name of the request's route, as `%ROUTE_NAME%` of Envoy's access log shows it; by default the
    /// request has none
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Time of the request, such as 2026-11-24T21:38:34Z; by default now
    #[arg(long)]
    pub at: Option<String>,
    /// Number of equal requests at that time; the last one is explained
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Convert the limits of another program, and list what differs.
///
/// Each rule has the line of its origin, and the differences between both limiters. Lists name the
/// limits that no rule expresses, and the settings that never had an effect.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportArguments {
    /// Manifests and configurations; folders; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read this format only; by default each that the files have
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(REGISTRY.iter().map(|format| format.name)))]
    pub from: Option<String>,
    /// Write the rules to this file instead of standard output
    #[arg(short, long, value_name = "RULES")]
    pub output: Option<PathBuf>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Count in each gateway, as the original in each of its processes; the default
    #[arg(long, conflicts_with = "fleet")]
    pub per_gateway: bool,
    /// Also compare the decisions about the requests of this access log, as for `diana replay`
    #[arg(long, value_name = "ACCESS_LOG", conflicts_with = "fleet")]
    pub replay: Vec<PathBuf>,
    /// Count in all gateways together, with the total of this number of processes of the original
    #[arg(long, value_name = "PROCESSES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub fleet: Option<u32>,
}

/// Show the explanation in a gateway's response as a table.
///
/// A gateway with `explain` adds it to the response of a request that has the operators' token.
/// It is found in the output of `curl -i` or `curl -v`, in the value of the header alone, and in
/// the JSON of `diana explain`.
#[derive(Debug, Args)]
#[command(after_help = WHY_HELP)]
pub struct WhyArguments {
    /// The response; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
}

/// Show how rules would have limited the requests of an access log.
///
/// The filter's own code evaluates the rules, on the clock of the log. Supported are the text and
/// JSON formats of Envoy and Istio, and the common and combined log formats, also compressed by
/// gzip or Zstandard. `global` rules are counted exactly across all gateways, without Redis.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub struct ReplayArguments {
    /// The rules: a file in which `diana check` finds rules in one place
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Access logs of one or several gateways, in any order; `-` for standard input
    #[arg(required = true, value_name = "ACCESS_LOG")]
    pub logs: Vec<PathBuf>,
    /// Other rules to compare with
    #[arg(long, value_name = "OTHER")]
    pub against: Option<PathBuf>,
    /// Number of gateways that share the requests
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub gateways: u16,
    /// Number of workers per gateway
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub workers: u16,
    /// Meaning of a field of the log, such as `header:x-account-id=account`: a name in JSON, with
    /// dots for nested fields, or the number of a column
    #[arg(long, value_name = "WHAT=FIELD")]
    pub set: Vec<String>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Also write a page with plots over time to this file
    #[arg(long, value_name = "PAGE")]
    pub html: Option<PathBuf>,
    /// Also write the decision about each request to this file, one line of JSON each; `-` for
    /// standard output
    #[arg(long, value_name = "LINES")]
    pub decisions: Option<PathBuf>,
}

/// Suggest a limit from the real traffic in an access log.
///
/// For each caller, the highest number of requests in a window is determined, as the algorithm W
/// counts in UTC. The suggestion is the lowest limit that would have refused requests of at most
/// the chosen share of callers. The output is rules in YAML, with figures in comments.
#[derive(Debug, Args)]
#[command(after_help = SUGGEST_HELP)]
pub struct Suggest {
    /// Access logs, as for `diana replay`
    #[arg(required = true, value_name = "ACCESS_LOG")]
    pub logs: Vec<PathBuf>,
    /// The limited callers: `account`, `device`, `address`, or a header such as `header:x-tenant`
    #[arg(long, default_value = "address")]
    pub actor: String,
    /// Path of the requests
    #[arg(long, default_value = "/")]
    pub url: String,
    /// Share of callers that may be refused
    #[arg(long, default_value = "0.1%", value_name = "SHARE")]
    pub refuse: String,
    /// Unit of the limit
    #[arg(long, value_enum, default_value_t = LimitUnit::Minute)]
    pub unit: LimitUnit,
    /// Meaning of a field of the log, as for `diana replay`
    #[arg(long, value_name = "WHAT=FIELD")]
    pub set: Vec<String>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
}

/// Serve rules and modules to gateways over HTTP.
///
/// Gateways read the rules by `remote` at /rules.yaml, and a module at
/// /modules/<SHA-256 of the file>.wasm, or .so for the dynamic module. A changed file of rules is served once it has no problems;
/// until then the last one without problems is. /ready answers 200 once there is one, /live always. /metrics has metrics for
/// Prometheus.
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArguments {
    /// The rules: a document as `remote` reads it
    #[arg(long, value_name = "FILE")]
    pub rules: PathBuf,
    /// The folder of the modules, `*.wasm` and `*.so`
    #[arg(long, value_name = "FOLDER")]
    pub modules: PathBuf,
    /// What teams may limit by LimitPolicy, in YAML: the policies of the cluster are served beside the rules
    #[cfg(feature = "policies")]
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// The form of the module that reads the rules
    #[arg(long, value_enum, default_value_t = CheckedHost::Wasm)]
    pub host: CheckedHost,
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// The certificate chain in PEM, which makes the server one of HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// Ask `diana serve` on this machine whether it is ready, and print its problems.
///
/// For probes that run a command: the event of a pod that is not ready then has each problem of the
/// rules with its line and column. A certificate is not verified.
#[derive(Debug, Args)]
#[command(after_help = READY_HELP)]
pub struct ReadyArguments {
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// The server is one of HTTPS
    #[arg(long)]
    pub tls: bool,
}

/// A unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LimitUnit {
    /// A second
    Second,
    /// A minute
    Minute,
    /// An hour
    Hour,
    /// A day in UTC
    Day,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables, for people
    Text,
    /// One JSON object, for programs
    Json,
}

/// The format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// With the lines of the file, for people
    Text,
    /// One JSON object, for programs
    Json,
    /// SARIF 2.1.0, which code hosts show next to the lines
    Sarif,
    /// Commands of GitHub Actions
    Github,
}
