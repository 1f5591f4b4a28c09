use super::{Key, LoggedKey, Seed};

const KEY: Key = Key { hash: 0x5d0c_3a7b_e1f2_a864, second_hash: 0x0a11_90c4_d3b7_e852 };

#[test]
fn logged_key_reads_as_it_is_written() {
    for gateway in [None, Some(Seed::PUBLIC.gateway()), Some(Seed { k0: 1, k1: 2 }.gateway())] {
        for key in [KEY, Key::ALL, Key::SHARED, Key { hash: u64::MAX, second_hash: 7 }] {
            let logged = LoggedKey { key, gateway };
            let end = gateway.map(|gateway| format!("-{gateway}")).unwrap_or_default();
            let text = format!("{:016x}{:016x}{end}", key.hash, key.second_hash);
            assert_eq!(logged.spell(), text);
            assert_eq!(LoggedKey::read(text.as_bytes()), Some(logged));
            assert_eq!(LoggedKey::read(text.to_uppercase().as_bytes()), Some(logged));
        }
    }
}

#[test]
fn text_that_is_no_key_is_not_read() {
    let short = "5d0c3a7be1f2a8640a1190c4d3b7e85";
    let digits = format!("{short}2");
    for text in [
        "",
        "-",
        "-9c41e07a",
        short,
        &format!("{digits}0"),
        &format!("{digits}-"),
        &format!("{digits}-9c41e07"),
        &format!("{digits}-9c41e07a0"),
        &format!("{digits}-9c41e07g"),
        &format!("{digits}-9c41e07a-9c41e07a"),
        &format!("{digits}9c41e07a"),
        &format!("+{short}"),
        &format!("{digits}-+c41e07a"),
        &format!("{short}é"),
    ] {
        assert_eq!(LoggedKey::read(text.as_bytes()), None, "{text}");
    }
    assert_eq!(LoggedKey::read(b"\xff"), None);
}

#[test]
fn gateways_have_names_of_their_own() {
    let names = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(k0, k1)| Seed { k0, k1 }.gateway());
    for (number, name) in names.iter().enumerate() {
        assert!(!names[..number].contains(name), "{name}");
    }
}
