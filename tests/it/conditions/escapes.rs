//! Percent-encodings with a single reading, so that `unless` can use the value.

use diana_policy::{Condition, Field, Test};
use diana_request::matching::condition;
use kit::fake::FakeRequest;

use super::{MAYBE, NO, YES};

/// Whether a condition on a parameter holds for a rule, and for an exemption.
fn of_query(test: Test, query: &str) -> (bool, bool) {
    of_named("mailto", test, query)
}

fn of_named(name: &str, test: Test, query: &str) -> (bool, bool) {
    let request = FakeRequest::get(&format!("/p?{query}"));
    let condition = Condition { field: Field::Query(name.into()), test };
    (condition::may_hold(&condition, &request), condition::must_hold(&condition, &request))
}

fn of_cookie(test: Test, header: &str) -> (bool, bool) {
    let request = FakeRequest::get("/").header("cookie", header);
    let condition = Condition { field: Field::Cookie("c".into()), test };
    (condition::may_hold(&condition, &request), condition::must_hold(&condition, &request))
}

fn exact(text: &str) -> Test {
    Test::Exact(text.into())
}

#[test]
fn unless_takes_out_values_that_must_be_encoded() {
    let contains = |text: &str| Test::Contains(text.into());
    assert_eq!(of_query(contains("@"), "mailto=ada%40example.com"), YES);
    for query in
        ["mailto=ada%40example.com", "a=b&mailto=ada%40example.com#x", "mailto=ada@example.com"]
    {
        assert_eq!(of_query(exact("ada@example.com"), query), YES, "{query}");
    }
    for (spelled, meant) in [
        ("a%20b", "a b"),
        ("caf%C3%A9", "café"),
        ("caf%c3%a9", "café"),
        ("100%25", "100%"),
        ("a%26b%3Dc", "a&b=c"),
        ("a%2Bb", "a+b"),
        ("https%3A%2F%2Fexample.com%2F%3Fx%3B%23%2Cy", "https://example.com/?x;#,y"),
    ] {
        let query = format!("mailto={spelled}");
        assert_eq!(of_query(exact(meant), &query), YES, "{query}");
        assert_eq!(of_query(Test::In(vec![meant.into()]), &query), YES, "{query}");
        assert!(!of_query(Test::Not(meant.into()), &query).1, "{query}");
        assert_eq!(of_query(Test::Not("other".into()), &query), YES, "{query}");
        // A rule also applies to the encoded text as written. An exemption does not.
        assert_eq!(of_query(exact(spelled), &query), MAYBE, "{query}");
    }
    // One matching value of several is not enough.
    assert_eq!(of_query(contains("@"), "mailto=ada%40example.com&mailto=ada"), MAYBE);
    assert_eq!(of_query(contains("@"), "mailto=ada"), NO);
}

#[test]
fn unless_keeps_values_that_readers_take_differently() {
    for (spelled, meant) in [
        ("%61da@example.com", "ada@example.com"),
        ("%61da%40example.com", "ada@example.com"),
        ("ada%40example%2Ecom", "ada@example.com"),
        ("ada%40example%2ecom", "ada@example.com"),
        ("a%5fb", "a_b"),
        ("a%7Eb", "a~b"),
        ("a%2Db%20c", "a-b c"),
        // Decoding twice has another result.
        ("ada%2540example.com", "ada%40example.com"),
        ("a%252Fb", "a%2Fb"),
        ("100%2525", "100%25"),
        // Some readers treat a plus as a space.
        ("a+b", "a b"),
        ("ada%40example+x", "ada@example x"),
        ("ada%40example+x", "ada@example+x"),
        // Invalid escapes next to a valid one.
        ("ada%40example%", "ada@example%"),
        ("ada%40%zz", "ada@%zz"),
    ] {
        assert_eq!(of_query(exact(meant), &format!("mailto={spelled}")), MAYBE, "{spelled}");
    }
    // Overlong and broken UTF-8, and control characters.
    for spelled in ["@%C0%AF", "@%E0%80%AF", "@%E9", "@%C3", "@%00", "@%0A", "@%7f", "@%C2%85"] {
        let not = Test::Not(spelled.into());
        assert_eq!(of_query(not, &format!("mailto={spelled}")), MAYBE, "{spelled}");
    }
    // Readers differ on these, so each of them may be a `bad guy`.
    for spelled in ["bad%2520guy", "bad%20guy%00", "%C1%A2ad+guy", "%62ad%20guy"] {
        let not = || Test::Not("bad guy".into());
        assert!(!of_query(not(), &format!("mailto={spelled}")).1, "{spelled}");
        assert!(!of_cookie(not(), &format!("c={spelled}")).1, "{spelled}");
    }
}

/// PHP reads a name up to a NUL, and names with brackets as arrays.
#[test]
fn unless_keeps_names_that_readers_take_differently() {
    for name in ["mailto%00", "mailto%00x", "mailto[]", "mailto%5B0%5D", "+mailto", "+mailto%00"] {
        let query = format!("mailto=a&{name}=b");
        assert_eq!(of_query(exact("a"), &query), MAYBE, "{name}");
        assert_eq!(of_query(Test::Not("b".into()), &query), MAYBE, "{name}");
        let alone = format!("{name}=b");
        assert_eq!(of_query(exact("b"), &alone), MAYBE, "{name}");
        assert_eq!(of_query(Test::Present(false), &alone), MAYBE, "{name}");
        if !name.contains('+') {
            assert_eq!(
                of_cookie(exact("a"), &format!("c=a; {}=b", name.replace("mailto", "c"))),
                MAYBE
            );
        }
    }
    assert_eq!(of_query(exact("b"), "mailtos=b&[mailto]=b"), NO);
}

#[test]
fn parameter_is_present_by_a_name_that_must_be_encoded() {
    for (spelled, name) in
        [("filter%5Bid%5D", "filter[id]"), ("a%20b", "a b"), ("caf%C3%A9", "café")]
    {
        assert_eq!(of_named(name, exact("1"), &format!("{spelled}=1")), YES, "{spelled}");
        // For a reader that does not decode, a rule still applies.
        let absent = of_named(name, Test::Present(false), &format!("{spelled}=1"));
        assert_eq!(absent, MAYBE, "{spelled}");
    }
    for (spelled, name) in [("%61b", "ab"), ("a+b", "a b"), ("a%5Fb%5B%5D", "a_b[]")] {
        assert_eq!(of_named(name, exact("1"), &format!("{spelled}=1")), MAYBE, "{spelled}");
    }
    let condition = |name: &str| Condition { field: Field::Cookie(name.into()), test: exact("1") };
    let request = FakeRequest::get("/").header("cookie", "caf%C3%A9=1; a%40b=1; %61c=1");
    assert!(
        condition::must_hold(&condition("café"), &request)
            && condition::must_hold(&condition("a@b"), &request)
    );
    assert!(
        condition::may_hold(&condition("ac"), &request)
            && !condition::must_hold(&condition("ac"), &request)
    );
}

/// RFC 3986: data in a query may require encoding of any character except the unreserved ones.
#[test]
fn query_value_is_plain_with_reserved_bytes_encoded() {
    for byte in 0..=0x7f_u8 {
        let letter = char::from(byte);
        let is_plain =
            !letter.is_ascii_alphanumeric() && !"-._~".contains(letter) && !letter.is_control();
        for code in [format!("%{byte:02x}"), format!("%{byte:02X}")] {
            let wanted = if is_plain { YES } else { MAYBE };
            let found = of_query(exact(&format!("a{letter}z")), &format!("mailto=a{code}z"));
            assert_eq!(found, wanted, "{code}");
        }
    }
}

/// Libraries encode cookies like queries, though most reserved bytes are valid in a cookie.
#[test]
fn cookie_value_is_plain_with_reserved_bytes_encoded() {
    for byte in 0..=0x7f_u8 {
        let letter = char::from(byte);
        for code in [format!("%{byte:02x}"), format!("%{byte:02X}")] {
            let is_plain =
                !letter.is_ascii_alphanumeric() && !"-._~".contains(letter) && !letter.is_control();
            let wanted = if is_plain { YES } else { MAYBE };
            let found = of_cookie(exact(&format!("a{letter}z")), &format!("c=a{code}z"));
            assert_eq!(found, wanted, "{code}");
        }
    }
    assert_eq!(of_cookie(Test::Contains("@".into()), "c=ada%40example.com"), YES);
    for (spelled, meant) in [
        ("caf%C3%A9", "café"),
        ("a%20b", "a b"),
        ("100%25", "100%"),
        ("ada%40example.com", "ada@example.com"),
    ] {
        for header in [format!("c={spelled}"), format!("a=b; c={spelled}; d")] {
            assert_eq!(of_cookie(exact(meant), &header), YES, "{header}");
        }
        // Some readers treat quotes as part of the value.
        assert_eq!(of_cookie(exact(meant), &format!("c=\"{spelled}\"")), MAYBE, "{spelled}");
    }
    for (spelled, meant) in [
        ("%61da%40example.com", "ada@example.com"),
        ("a%2520b", "a%20b"),
        ("a%20%62", "a b"),
        ("a%20%", "a %"),
        ("a%20+b", "a +b"),
    ] {
        assert_eq!(of_cookie(exact(meant), &format!("c={spelled}")), MAYBE, "{spelled}");
    }
    for spelled in ["caf%E9", "%C0%AF", "%22%00"] {
        let not = Test::Not(spelled.into());
        assert_eq!(of_cookie(not, &format!("c={spelled}")), MAYBE, "{spelled}");
    }
}
