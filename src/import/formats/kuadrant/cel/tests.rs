//! Predicates that nobody writes.

use super::predicate;

#[test]
fn depth_is_bounded() {
    for opening in ["!", "(", "!("] {
        let text = opening.repeat(100_000) + "request.method == 'GET'";
        assert!(predicate(&text).unwrap_err().contains("too many"), "{opening}");
    }
    assert!(predicate("!(!(request.method == 'GET'))").is_ok());
}
