//! The command `diana` for operators. It uses the crates of the filter, and so makes the same
//! decisions.

mod advice;
mod arguments;
mod callers;
mod check;
mod completions;
mod copy;
mod exit;
mod explain;
mod explanation;
mod finding;
mod import;
mod input;
mod interrupt;
mod log;
mod manifest;
mod ready;
mod replay;
mod rules;
mod schema;
mod serve;
mod show;
mod suggest;
mod table;
mod text;
mod view;
mod why;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use exit::Exit;

/// Runs the command with these arguments, including its name.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to standard output and is a success. An error from a closed pipe is
            // ignored.
            _ = error.print();
            return if error.use_stderr() { Exit::Unusable } else { Exit::Fine }.into();
        }
    };
    let mut out = io::stdout().lock();
    let done = match arguments.command {
        Command::Check(check) => check::run(&check, arguments.color, &mut out),
        Command::Copy { file, folder } => copy::run(&file, &folder),
        Command::Completions { shell } => completions::script(shell, &mut out),
        Command::Explain(explain) => explain::run(&explain, &mut out),
        Command::Import(import) => import::run(&import, &mut out),
        Command::Ready(ready) => ready::run(&ready, &mut out),
        Command::Replay(replay) => replay::run(&replay, &mut out),
        Command::Schema { crd } => schema::run(crd, &mut out),
        Command::Serve(serve) => serve::run(&serve),
        Command::Suggest(suggest) => suggest::run(&suggest, &mut out),
        Command::Why(why) => why::run(&why, &mut out),
        Command::TimeZone { name } => time_zone(&name, &mut out),
        Command::Man => completions::man_page(&mut out),
    };
    match done.and_then(|exit| out.flush().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Fine.into(),
        Err(error) => {
            _ = writeln!(io::stderr(), "diana: {error}");
            Exit::Unusable.into()
        }
    }
}

/// Writes the POSIX rule of a time zone.
fn time_zone(name: &str, out: &mut dyn Write) -> io::Result<Exit> {
    if let Some(rule) = diana_config::zone_rule(name) {
        writeln!(out, "{rule}")?;
        return Ok(Exit::Fine);
    }
    let found = text::plain(name);
    writeln!(
        io::stderr(),
        "diana: found `{found}`, allowed: the name of a time zone such as Europe/Berlin"
    )?;
    Ok(Exit::Unusable)
}
