//! The output of the command: session files with a transcript next to each.
//!
//! A session is the text of `rules.yaml` followed by commands, each after `$ `, which run in the
//! folder of that file.

use std::fmt::Write;

use crate::command::{diana_in, folder, words};
use crate::documents::assert_snapshots;

const COMMAND: &str = "$ diana ";

#[test]
fn sessions_match_their_transcripts() {
    let sessions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/sessions");
    assert_snapshots(sessions, |_, _, text| {
        let (commands, rules): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with(COMMAND));
        let folder = folder(&[("rules.yaml", &(rules.join("\n") + "\n"))]);
        let mut transcript = String::new();
        for command in commands {
            let arguments = command.strip_prefix(COMMAND).unwrap();
            let ran = diana_in(&folder, &words(arguments), b"");
            write!(transcript, "{command}\n{}{}", ran.out, ran.error).unwrap();
            if let Some(code) = ran.code.filter(|code| *code != 0) {
                writeln!(transcript, "exit status {code}").unwrap();
            }
        }
        transcript
    });
}
