//! Runs the command. Also tests of the whole command.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The output of the command, and its exit code.
#[derive(Debug)]
pub struct Ran {
    pub out: String,
    pub error: String,
    pub code: Option<i32>,
}

/// Runs the command in the root of the project, with these bytes on its standard input.
pub fn with_input(arguments: &[&str], input: &[u8]) -> Ran {
    diana_in(&root(), arguments, input)
}

/// Runs the command in a folder, with these bytes on its standard input.
pub fn diana_in(folder: &Path, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diana"));
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The command may end before it has read all input.
    let feed = std::thread::spawn(move || _ = stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { out: text(output.stdout), error: text(output.stderr), code: output.status.code() }
}

pub fn diana(arguments: &[&str]) -> Ran {
    with_input(arguments, b"")
}

/// The arguments of a command line. Quotes group words with spaces.
pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    words
}

/// Runs the command with a closed output pipe. It must end without an error.
#[track_caller]
pub fn ends_quietly_without_reader(arguments: &[&str]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_diana"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A new folder with these files.
pub fn folder(files: &[(&str, &str)]) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{}-{number}", std::process::id()));
    _ = fs::remove_dir_all(&folder);
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn help_names_all_commands_and_the_exit_codes() {
    let Ran { out, code, .. } = diana(&["--help"]);
    assert_eq!(code, Some(0));
    for word in [
        "check",
        "copy",
        "explain",
        "import",
        "replay",
        "schema",
        "serve",
        "suggest",
        "why",
        "completions",
        "man",
        "Exit status",
        "2 the input",
    ] {
        assert!(out.contains(word), "{word} is missing in {out}");
    }
    // Names are accepted in its place.
    assert!(!out.contains("time-zone"), "{out}");
}

#[test]
fn help_of_each_command_has_examples() {
    let commands =
        "check copy explain import ready replay schema serve suggest time-zone why completions man";
    for command in commands.split(' ') {
        let help = diana(&[command, "--help"]).out;
        assert!(help.contains("Example") && help.contains(&format!("diana {command}")), "{help}");
    }
}

#[test]
fn color_is_chosen_by_an_option() {
    let folder = folder(&[("rules.yaml", "limits: 5")]);
    for (when, is_coloured) in [("always", true), ("never", false), ("auto", false)] {
        let ran = diana_in(&folder, &["check", "rules.yaml", "--color", when], b"");
        assert_eq!(
            (ran.out.contains('\u{1b}'), ran.code),
            (is_coloured, Some(1)),
            "{when}: {ran:?}"
        );
    }
}

#[test]
fn completions_and_man_page_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = diana(&["completions", shell]).out;
        assert!(script.contains("completions") && script.contains("format"), "{shell}: {script}");
    }
    let page = diana(&["man"]).out;
    assert!(
        page.starts_with(".") && page.contains("diana check") && page.contains("\\-\\-format"),
        "{page}"
    );
}

#[test]
fn closed_pipe_ends_the_command_quietly() {
    ends_quietly_without_reader(&["man"]);
}

#[test]
fn copy_replaces_a_file_in_a_folder() {
    let folder = folder(&[("libdiana.so", "new"), ("to/libdiana.so", "old"), ("to/other", "kept")]);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let loaded = fs::File::open(folder.join("to/libdiana.so")).unwrap();
    let Ran { out, error, code } = diana(&["copy", &path("libdiana.so"), &path("to")]);
    assert_eq!((out.as_str(), error.as_str(), code), ("", "", Some(0)));
    let mut names: Vec<_> =
        fs::read_dir(folder.join("to")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["libdiana.so", "other"]);
    assert_eq!(fs::read_to_string(folder.join("to/libdiana.so")).unwrap(), "new");
    // The file that a process has loaded is another one.
    assert_eq!(std::io::read_to_string(loaded).unwrap(), "old");
    for (file, to, problem) in [
        ("nothing", "to", "nothing: No such file"),
        ("libdiana.so", "nowhere", "nowhere"),
        ("to", "to", "to: Is a directory"),
    ] {
        let Ran { error, code, .. } = diana(&["copy", &path(file), &path(to)]);
        assert!(code == Some(2) && error.contains(problem), "{error}");
    }
}
