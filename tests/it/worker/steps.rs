//! What the host does with streams after a call of the worker.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::size_of;

use diana_worker::{Effects, HostStream, Next, Step, is_marked};

/// Every request has one, and another thread may take it.
#[test]
fn step_is_small_and_refers_to_no_worker() {
    fn is_send<T: Send>() {}
    is_send::<Step>();
    assert!(size_of::<Step>() <= 24, "{} bytes", size_of::<Step>());
    let Step { effects, next } = Step::default();
    assert!(effects.is_none() && matches!(next, Next::Continue));
}

#[derive(Default)]
struct FakeStream {
    headers: Vec<String>,
    state: BTreeMap<String, Vec<u8>>,
}

impl HostStream for FakeStream {
    fn remove_header(&mut self, name: &str) {
        self.headers.push(format!("without {name}"));
    }

    fn add_header(&mut self, name: &str, value: &str) {
        self.headers.push(format!("{name}: {value}"));
    }

    fn filter_state(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.state.get(name).map(|value| value.as_slice().into())
    }

    fn set_filter_state(&mut self, name: &str, value: &[u8]) {
        self.state.insert(name.into(), value.into());
    }
}

/// Two filters of one chain, each with an entry and a mark.
#[test]
fn effects_of_an_earlier_filter_stay() {
    let mut stream = FakeStream::default();
    for (number, all) in [(1, "held 1"), (2, "held 1; held 2")] {
        let mark = format!("x-{number}");
        assert!(!is_marked(&mark, &stream));
        let effects = Effects {
            removed: Some("x-why".into()),
            marks: vec![(mark.as_str().into(), "spill".into())],
            log: Some(format!("held {number}")),
        };
        let step = Step { effects: Some(Box::new(effects)), next: Next::Continue };
        assert!(matches!(step.apply(&mut stream), Next::Continue));
        assert_eq!(stream.state["wasm.diana"], all.as_bytes());
        assert_eq!(std::mem::take(&mut stream.headers), ["without x-why".into(), mark + ": spill"]);
    }
    assert!(is_marked("x-1", &stream) && is_marked("x-2", &stream));
    _ = Step::default().apply(&mut stream);
    assert_eq!(stream.headers, [""; 0]);
}
