//! The output of the command: session files with the output of each command.
//!
//! A session is the text of `rules.yaml` followed by commands, each after `$ `, which run in the
//! folder of that file.

use std::fmt::Write;

use crate::command::{diana_in, folder, words};
use crate::documents::{assert_outcomes, outcome};

const COMMAND: &str = "$ diana ";

#[test]
fn sessions_match_their_transcripts() {
    let sessions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/sessions");
    assert_outcomes(sessions, |_, _, text| {
        let (commands, rules): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with(COMMAND));
        let folder = folder(&[("rules.yaml", &(rules.join("\n") + "\n"))]);
        let mut transcript = String::new();
        for command in commands {
            let arguments = command.strip_prefix(COMMAND).unwrap();
            let ran = diana_in(&folder, &words(arguments), b"");
            let mut lines = ran.out + &ran.error;
            if let Some(code) = ran.code.filter(|code| *code != 0) {
                writeln!(lines, "exit status {code}").unwrap();
            }
            transcript += &outcome(command, &lines);
        }
        transcript
    });
}
