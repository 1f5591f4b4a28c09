//! Shared data that vanishes, or into which somebody else has written.

use fastrand::Rng;

use host::Host;
use host::request::Request;
use host::shared_data::SharedData;
use host::status::Status;

const SECOND: u64 = 1_000_000;
const RPU: usize = 40;

fn config() -> String {
    let rule = |algo| {
        format!(
            "- {{Url: /{algo}, rules: [{{actor: device, unit: day, rpu: {RPU}, algo: {algo}}}]}}\n"
        )
    };
    let line = "- {Url: /LB, rules: [{actor: device, unit: second, rpu: 50, algo: LB}]}\n";
    format!("limits:\n{}{line}keys: 50", ["W", "SW", "TB"].map(rule).concat())
}

/// What somebody else might leave behind.
fn corrupt(value: &mut Vec<u8>, random: &mut Rng) {
    match random.u8(..7) {
        0 => value.clear(),
        1 => value.truncate(random.usize(..=value.len())),
        2 => value.extend([0; 7]),
        3 => *value = vec![0xff; value.len()],
        4 => *value = (0..random.usize(..4_000)).map(|_| random.u8(..)).collect(),
        5 => value.iter_mut().skip(8).for_each(|byte| *byte = random.u8(..)),
        _ => {}
    }
}

#[test]
fn nothing_that_is_done_to_shared_data_traps() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut host = Host::new(seed);
    let mut proxy = host.start_proxy(3, &config()).unwrap_or_else(|error| panic!("{error}"));
    let mut open = Vec::new();
    let mut admitted = 0;
    for _ in 0..6_000 {
        proxy.run(random.u64(0..SECOND / 50));
        match random.u8(..60) {
            0 => host.shared_data().clear(),
            1 => host.shared_data().spoil(|value| corrupt(value, &mut random)),
            _ => {}
        }
        let path = ["/W", "/SW", "/TB", "/LB"][random.usize(..4)];
        let request = Request::get(path).header("x-device-id", random.u8(..5).to_string());
        let worker = random.usize(..3);
        let stream = proxy.workers[worker].open(&request).unwrap_or_else(|trap| panic!("{trap}"));
        admitted += u32::from(proxy.workers[worker].answer(stream).is_admitted());
        open.push((worker, stream));
        if open.len() > 20 {
            let (worker, stream) = open.swap_remove(random.usize(..20));
            proxy.workers[worker].close(stream).unwrap_or_else(|trap| panic!("{trap}"));
        }
    }
    println!("{admitted} admitted");
    assert!(admitted > 500, "it goes on judging");
    proxy.run(2 * SECOND);
    assert!(host.counter("diana.shop.shared.foreign") > Some(10), "{:?}", host.metrics());
    for (worker, stream) in open {
        assert!(!proxy.workers[worker].answer(stream).is_held(), "nobody waits for ever");
    }
}

#[test]
fn every_write_of_any_key_takes_the_next_number() {
    let mut data = SharedData::default();
    data.set(b"a", b"1", 0).unwrap();
    data.set(b"b", b"2", 0).unwrap();
    data.set(b"a", b"3", 0).unwrap();
    assert_eq!(data.get(b"a"), Some(&(b"3".to_vec(), 3)));
    assert_eq!(data.get(b"b"), Some(&(b"2".to_vec(), 2)));
}

#[test]
fn a_wrong_number_is_a_mismatch_only_where_the_key_exists() {
    let mut data = SharedData::default();
    data.set(b"a", b"1", u32::MAX).unwrap();
    assert_eq!(data.set(b"a", b"2", u32::MAX), Err(Status::CasMismatch));
    assert_eq!(data.set(b"a", b"2", 1), Ok(()));
    assert_eq!(data.set(b"a", b"3", 1), Err(Status::CasMismatch));
    assert_eq!(data.keys(), 1);
}
