//! The command `diana`.

use std::process::ExitCode;

fn main() -> ExitCode {
    diana_cli::run(std::env::args_os())
}
