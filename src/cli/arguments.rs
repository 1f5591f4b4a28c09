//! What the command is called with.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

const EXITS: &str = "Exit status: 0 fine, 1 the rules have problems, 2 the input cannot be used.";

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
    /// Print the JSON Schema of rules, for editors
    Schema,
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
