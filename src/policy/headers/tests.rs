use super::Headers;

#[test]
fn headers_are_read_as_they_were_added() {
    let pairs = [("a", "1"), ("long-name", ""), ("a", "2, \"3\""), ("é", "ü")];
    let mut headers: Headers = pairs.into_iter().collect();
    headers.write("none", |_| {});
    headers.write("written", |text| text.push_str("in place"));
    let all: Vec<(&str, &str)> = headers.iter().collect();
    assert_eq!(all, [pairs.as_slice(), &[("written", "in place")]].concat());
    assert_eq!((headers.get("a"), headers.get("none")), (Some("1"), None));
    assert!(!headers.is_empty() && Headers::default().is_empty());
}

/// As hosts take them.
#[test]
fn parts_are_lengths_and_terminated_texts() {
    let mut headers = Headers::with_capacity(1, 1);
    headers.push("ab", "c");
    headers.write("d", |text| text.push_str("ef"));
    let (lengths, texts) = headers.parts();
    let lengths: Vec<_> = lengths.iter().map(|both| both.map(u32::from_le_bytes)).collect();
    assert_eq!((lengths.as_slice(), texts), ([[2, 1], [1, 2]].as_slice(), "ab\0c\0d\0ef\0"));
}
