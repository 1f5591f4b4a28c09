//! Shell completions and the manual page, generated from the arguments.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::exit::Exit;

/// Writes the completion script of a shell.
pub fn script(shell: Shell, out: &mut dyn Write) -> io::Result<Exit> {
    // `generate` panics on a write error, so it must not write to a pipe that may be closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "diana", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Fine)
}

/// Writes the manual page, including that of each subcommand.
pub fn man_page(mut out: &mut dyn Write) -> io::Result<Exit> {
    let mut command = Arguments::command();
    command.build();
    Man::new(command.clone()).render(&mut out)?;
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        let name = format!("diana {}", part.get_name());
        let page = Man::new(part.clone().display_name(name));
        page.render_synopsis_section(&mut out)?;
        page.render_description_section(&mut out)?;
        page.render_options_section(&mut out)?;
    }
    Ok(Exit::Fine)
}
