//! The page with plots.

use std::fs;

use serde_json::Value;

use super::{BEGIN, LoggedRequest, files, logged, name};
use crate::command::diana;

const RULES: &str =
    "limits: [{Url: /, rules: [{name: it, actor: account, unit: minute, rpu: 1, algo: W}]}]";

fn page(log: &[LoggedRequest]) -> String {
    let (folder, rules, log) = files(RULES, log);
    let page = folder.join("report.html");
    let set = "header:x-account-id=14";
    let ran = diana(&["replay", &rules, &log, "--set", set, "--html", name(&page)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::read_to_string(page).unwrap()
}

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn page_fetches_no_resources() {
    let page = page(&[logged(BEGIN, "/", 1)]);
    assert!(!page.contains("{{"), "a part of it was not filled in");
    for fetches in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(fetches), "{fetches}");
    }
    assert!(page.contains("Permission is hereby granted") && page.contains("prefers-color-scheme"));
}

/// Any content of a log stays text.
#[test]
fn markup_in_a_log_stays_text() {
    let (_, rules, log) = files(RULES, &[logged(BEGIN, "/", 1), logged(BEGIN, "/", 1)]);
    let text = fs::read_to_string(&log).unwrap().replace("account-1", "</script><b>{{plot}}<!--");
    fs::write(&log, text).unwrap();
    let html = log.replace("access.log", "report.html");
    diana(&["replay", &rules, &log, "--set", "header:x-account-id=14", "--html", &html]);
    let page = fs::read_to_string(html).unwrap();
    assert_eq!(page.matches("</script><b>").count(), 0);
    assert_eq!(data(&page)["rules"]["refused_most"][0]["caller"], "</script><b>{{plot}}<!--");
    assert_eq!(page.matches("</script>").count(), 3);
}

/// The number of steps is bounded for logs of any length, and all requests are counted.
#[test]
fn counts_over_time_add_up() {
    for days in [0, 2, 400, 2000] {
        let apart = days * 86_400 + 1;
        let log: Vec<LoggedRequest> =
            (0..3000).map(|number| logged(BEGIN + number * apart * 1000 / 3, "/", 1)).collect();
        let report = data(&page(&log));
        let time = &report["rules"]["over_time"];
        let sum = |of: &Value| {
            of.as_array().map_or(0, |it| it.iter().map(|it| it.as_u64().unwrap()).sum())
        };
        let all = &report["rules"]["all"];
        let counted: [u64; 2] = ["admitted", "refused"].map(|what| sum(&time["all"][what]));
        assert_eq!(counted.map(Value::from), ["admitted", "refused"].map(|what| all[what].clone()));
        assert_eq!(counted.iter().sum::<u64>(), 3000);
        let begins = time["begins"].as_array().unwrap();
        assert!((2..=1000).contains(&begins.len()), "{} steps", begins.len());
        let step = time["step"].as_u64().unwrap();
        assert!(begins.iter().all(|at| at.as_u64().unwrap() % step == 0));
    }
}
