//! The page of recipes: each file starts unchanged, and the commands of its section print the output
//! on the page.

use std::process::Command;

use crate::harness::{Redis, shipped_text, start_whole};

const PAGE: &str = "docs/guides/recipes.md";

/// A section with a file, by its heading.
struct Section {
    heading: String,
    text: String,
}

impl Section {
    fn all() -> Vec<Section> {
        let page = shipped_text(PAGE);
        let sections = page.split("\n## ").skip(1).map(|section| {
            let (heading, text) = section.split_once('\n').expect("a section has text");
            Section { heading: heading.into(), text: text.into() }
        });
        sections.filter(|section| section.text.contains("make run CONFIG=")).collect()
    }

    /// The file that its reader starts.
    fn file(&self) -> &str {
        let (_, rest) = self.text.split_once("make run CONFIG=").expect("it has a file");
        rest.lines().next().expect("a name")
    }

    /// The lines of its blocks `console`.
    fn console(&self) -> Vec<&str> {
        let blocks = self.text.split("```console\n").skip(1);
        blocks.flat_map(|block| block.split("```").next().expect("it ends").lines()).collect()
    }
}

/// The commands that all sections share.
fn preparation() -> String {
    let page = shipped_text(PAGE);
    let (_, rest) = page.split_once("```sh\n").expect("the page prepares a shell");
    rest.split("```").next().expect("it ends").into()
}

/// Runs the commands of a section, and compares their output with the page.
#[track_caller]
fn play(heading: &str) {
    let sections = Section::all();
    let section = sections.iter().find(|section| section.heading == heading).expect("a section");
    let redis = section.text.contains("redis-server").then(Redis::start);
    let envoy = start_whole(section.file(), redis.as_ref().map(|redis| redis.port));
    let mut script = preparation();
    let mut expected = String::new();
    for line in section.console() {
        match line.strip_prefix("$ ") {
            Some(command) => script += &format!("{command}\n"),
            None => expected += &format!("{line}\n"),
        }
    }
    script = script.replace("127.0.0.1:10000", &format!("127.0.0.1:{}", envoy.port));
    if let Some(redis) = &redis {
        script = script.replace("16379", &redis.port.to_string());
    }
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
    let found: String = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|it| format!("{}\n", it.trim()))
        .collect();
    assert_eq!(found, expected, "{}", String::from_utf8_lossy(&output.stderr));
    envoy.assert_unharmed();
}

macro_rules! sections {
    ($($name:ident: $heading:expr,)*) => {
        $(#[test]
        fn $name() {
            play($heading);
        })*

        #[test]
        fn all_sections_are_played() {
            let headings: Vec<String> = Section::all().into_iter().map(|it| it.heading).collect();
            assert_eq!(headings, [$($heading),*]);
        }
    };
}

sections! {
    api_keys: "API keys, else addresses, behind two proxies",
    logins: "Logins by name and address",
    plans: "Plans by a verified claim",
    tokens: "Tokens of a language model",
    organisations: "Organisations in the path",
    spill: "Quota-aware routing",
    mcp_tools: "Tools of an MCP server",
    event_source: "Browsers with EventSource",
    accept: "A page for browsers, JSON for programs",
    access_keys: "Access keys inside `authorization`",
    attempts: "Attempts of retries",
    not_modified: "Responses 304 without cost",
    websockets: "Opens of WebSockets",
    hours: "Limits by the clock",
    trials: "Trials, once for ever",
    closed_for_logins: "Closed for logins while Redis is away",
    open_route: "A route without limits",
    routes: "Limits of routes",
    graphql: "GraphQL",
}
