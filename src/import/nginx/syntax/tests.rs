use super::{Directive, is_nginx, parse};
use crate::source::SourceText;

fn read(text: &str) -> (String, Option<(usize, String)>) {
    fn show(list: &[Directive]) -> String {
        let one = |it: &Directive| match it.block.is_empty() {
            true => format!("{}:{};", it.origin.line, it.words.join("|")),
            false => format!("{}:{}{{{}}}", it.origin.line, it.words.join("|"), show(&it.block)),
        };
        list.iter().map(one).collect()
    }
    let (list, fault) = parse(&SourceText { name: "f".into(), text: text.into() });
    (show(&list), fault.map(|(origin, why)| (origin.line, why)))
}

#[test]
fn directives_have_their_words_and_lines() {
    for (text, expected) in [
        ("a b;\r\n# c;\nd 'e f' \"g;\" ;", "1:a|b;3:d|e f|g;;"),
        ("\u{feff}http { server\n{ x; } }", "1:http{1:server{2:x;}}"),
        (r"rewrite ^/a\.b$ /c\;d;", r"1:rewrite|^/a\.b$|/c;d;"),
        ("map $a ${b}c { x 2; }", "1:map|$a|${b}c{1:x|2;}"),
        ("a#b c;", "1:a#b|c;"),
        (
            "x_by_lua_block { if a then { b } end } y;",
            "1:x_by_lua_block| if a then { b } end ;1:y;",
        ),
    ] {
        assert_eq!(read(text), (expected.to_owned(), None), "{text}");
    }
}

#[test]
fn half_a_file_has_its_beginning_and_a_fault() {
    for (text, expected, line) in [
        ("a;\nb {\n c;", "1:a;2:b{3:c;}", 2),
        ("a;\nb c", "1:a;", 2),
        ("a;\n}", "1:a;", 2),
        ("a;\nb 'c;", "1:a;", 2),
        ("a { b }", "1:a;", 1),
    ] {
        let (found, fault) = read(text);
        assert_eq!((found.as_str(), fault.map(|it| it.0)), (expected, Some(line)), "{text}");
    }
    let (_, fault) = read(&"a {".repeat(100));
    assert_eq!(fault, Some((1, "nested too deeply".into())));
}

#[test]
fn other_formats_are_no_nginx() {
    for text in ["http {", "# c\nuser  nginx;", "server { a; }", "limit_req zone=a;"] {
        assert!(is_nginx(text), "{text}");
    }
    for text in ["", "a: b", "---\na: {b: c}", "{\"a\": 1}", "[http]\na = 1", "a = 1", "- a;", "x"]
    {
        assert!(!is_nginx(text), "{text}");
    }
}
