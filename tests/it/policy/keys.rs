//! Hashes of callers.

use diana_policy::key::{KeyHasher, Seed};

fn hash(seed: u64, parts: &[(usize, &str)]) -> (u64, u64) {
    let mut hasher = KeyHasher::new(&Seed { k0: seed, k1: 0 });
    for (source, value) in parts {
        hasher.part(*source, value.as_bytes());
    }
    let key = hasher.finish();
    (key.hash, key.second_hash)
}

#[test]
fn hash_depends_on_parts_sources_and_seed() {
    let hashes = [
        hash(1, &[(0, "ab"), (0, "c")]),
        hash(1, &[(0, "a"), (0, "bc")]),
        hash(1, &[(0, "abc")]),
        hash(1, &[(1, "abc")]),
        hash(2, &[(0, "abc")]),
        hash(1, &[(0, "abc"), (0, "")]),
        // Values that contain the encoding of another part's source and length.
        hash(1, &[(0, "ab\0\0\0\0\0\0\0\0c")]),
        hash(1, &[(0, "ab\0\0\0\0\0\0\0\0\u{1}\0\0\0\0\0\0\0c")]),
    ];
    for (at, one) in hashes.iter().enumerate() {
        assert!(hashes.iter().skip(at + 1).all(|other| one != other), "{at}");
    }
}

#[test]
fn hash_is_the_same_on_every_machine() {
    assert_eq!(hash(1, &[(0, "abc")]), hash(1, &[(0, "abc")]));
    let mut public = KeyHasher::public();
    public.part(0, b"abc");
    // Workers of different builds select the same callers by it.
    assert_eq!(public.finish().hash, 14_261_797_885_008_745_417);
}
