//! What the command is called with.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

const EXITS: &str = "Exit status: 0 fine, 1 the rules have problems, 2 the input cannot be used.";
const LOG_EXITS: &str = "Exit status: 0 fine, 1 the rules have problems, 2 the input cannot be used or breaks off, \
                         130 interrupted.";

/// Rate limits for Envoy and Istio: the same rules as in the filter, before a gateway has them.
#[derive(Debug, Parser)]
#[command(name = "diana", version, after_help = EXITS)]
pub struct Arguments {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// What there is to be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find every problem in rules, and what is probably not meant
    Check(Check),
    /// Tell what rules say of one request, and why others do not apply
    Explain(Explain),
    /// Tell what rules would have done with the requests of an access log
    Replay(Replay),
    /// Print the JSON Schema of rules, for editors
    Schema,
    /// Suggest a limit by what the callers of an access log really do
    Suggest(Suggest),
    /// Print what `time_zone` has to say for a time zone such as Europe/Berlin
    TimeZone {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Print a script by which a shell completes this command
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print the manual page, for `man -l -`
    Man,
}

/// Find every problem in rules, and what is probably not meant.
///
/// Rules are found in plain files of YAML or JSON, and in the manifests that bring them to a proxy: Envoy's own
/// configuration (StringValue and Struct), EnvoyFilter, WasmPlugin, EnvoyExtensionPolicy, ConfigMap, List.
#[derive(Debug, Args)]
#[command(after_help = EXITS)]
pub struct Check {
    /// Files of YAML or JSON; folders, of which each `.yaml`, `.yml` and `.json` is read that holds rules; `-` for
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How what was found is told
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Tell what rules say of one request, and why others do not apply.
///
/// The request comes to a gateway of one worker that nobody has called before; rules for the whole fleet are counted
/// as by one gateway.
#[derive(Debug, Args)]
#[command(after_help = EXITS)]
pub struct Explain {
    /// The rules: a file of which `diana check` finds rules in one place
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Its path, with its query; or the whole URL
    #[arg(long)]
    pub url: String,
    /// Its method
    #[arg(long, default_value = "GET")]
    pub method: String,
    /// A header of it, such as `x-account-id: ada`
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// The address of its client
    #[arg(long)]
    pub address: Option<String>,
    /// When it comes, such as 2026-11-24T21:38:34Z; by default now
    #[arg(long)]
    pub at: Option<String>,
    /// How many such requests come at that instant; the last one is explained
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Tell what rules would have done with the requests of an access log.
///
/// The rules are run by the filter's own core, on the log's own clock. Lines are read in the formats of Envoy and Istio,
/// their own and JSON, and in the common and combined log formats; files may be compressed by gzip or Zstandard. Rules
/// for the whole fleet are counted by all gateways together, at once and without Redis.
#[derive(Debug, Args)]
#[command(after_help = LOG_EXITS)]
pub struct Replay {
    /// The rules: a file of which `diana check` finds rules in one place
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Access logs, of one gateway or several, in any order; `-` for standard input
    #[arg(required = true, value_name = "ACCESS_LOG")]
    pub logs: Vec<PathBuf>,
    /// Other rules, to compare with
    #[arg(long, value_name = "OTHER")]
    pub against: Option<PathBuf>,
    /// Gateways over which the requests are spread
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub gateways: u16,
    /// Workers of each gateway
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub workers: u16,
    /// What a field of the log is, such as `header:x-account-id=account`: a name in JSON, with dots between those of
    /// fields within fields, or the number of a column
    #[arg(long, value_name = "WHAT=FIELD")]
    pub set: Vec<String>,
    /// How it is told
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Write a page with plots over time to this file, too
    #[arg(long, value_name = "PAGE")]
    pub html: Option<PathBuf>,
    /// Write what becomes of each request to this file, too, a line of JSON each; `-` for standard output
    #[arg(long, value_name = "LINES")]
    pub decisions: Option<PathBuf>,
}

/// Suggest a limit by what the callers of an access log really do.
///
/// Counted is how many requests each caller made at most at a time, in windows as the algorithm W has them in UTC. The
/// limit is the lowest by which no more than the chosen share of the callers are ever refused. All of the output is
/// rules, as YAML, with the rest in comments.
#[derive(Debug, Args)]
#[command(after_help = LOG_EXITS)]
pub struct Suggest {
    /// Access logs, as of `diana replay`
    #[arg(required = true, value_name = "ACCESS_LOG")]
    pub logs: Vec<PathBuf>,
    /// Who is limited: `account`, `device`, `address`, or a header such as `header:x-tenant`
    #[arg(long, default_value = "address")]
    pub actor: String,
    /// Under which path
    #[arg(long, default_value = "/")]
    pub url: String,
    /// Share of the callers that may be refused
    #[arg(long, default_value = "0.1%", value_name = "SHARE")]
    pub refuse: String,
    /// The unit that the limit counts in
    #[arg(long, value_enum, default_value_t = LimitUnit::Minute)]
    pub unit: LimitUnit,
    /// What a field of the log is, as in `diana replay`
    #[arg(long, value_name = "WHAT=FIELD")]
    pub set: Vec<String>,
    /// How it is told
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
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

/// How a report is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables, for people
    Text,
    /// One object, for programs
    Json,
}

/// How what was found is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// With the lines it is about, for people
    Text,
    /// One object, for programs
    Json,
    /// SARIF 2.1.0, which code hosts show beside the lines
    Sarif,
    /// Commands of GitHub Actions
    Github,
}
