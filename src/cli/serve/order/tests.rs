//! The order of documents, among all replicas of small worlds.

use super::*;

/// Two kinds of objects with these texts at each version.
fn text(cut: [usize; 2]) -> u64 {
    // The first kind returns to its former state.
    let [one, other] = cut;
    [7, 8, 7, 9][one] * 10 + other as u64
}

#[derive(Clone)]
struct Replica {
    cut: [usize; 2],
    served: DocumentTag,
}

impl Replica {
    fn at(cut: [usize; 2]) -> Replica {
        Replica { cut, served: DocumentTag { version: text(cut), order: order(cut) } }
    }

    fn advance(&mut self, cut: [usize; 2]) {
        self.cut = cut;
        if text(cut) != self.served.version {
            *self = Replica::at(cut);
        }
    }
}

fn order(cut: [usize; 2]) -> DocumentOrder {
    DocumentOrder::of(cut.map(|version| version as u64))
}

/// All worlds in which two replicas read changes in turn, and a gateway asks either: no document is
/// composed of an older state of a kind than one that the gateway has had.
#[test]
fn no_gateway_goes_back() {
    let mut late = 0;
    for choices in 0..7_usize.pow(6) {
        let mut replicas = [Replica::at([0, 0]), Replica::at([0, 0])];
        let mut had: Option<(DocumentTag, [usize; 2])> = None;
        let mut rest = choices;
        for _ in 0..6 {
            let choice = rest % 7;
            rest /= 7;
            match choice {
                // A replica reads a change of a kind.
                0..=3 => {
                    let replica = &mut replicas[choice / 2];
                    let mut cut = replica.cut;
                    cut[choice % 2] = (cut[choice % 2] + 1).min(3);
                    replica.advance(cut);
                }
                // One starts again, and lists all objects.
                4 => {
                    let newest =
                        [0, 1].map(|kind| replicas[0].cut[kind].max(replicas[1].cut[kind]));
                    replicas[1] = Replica::at(newest);
                }
                asked => {
                    let Replica { cut, served } = &replicas[asked - 5];
                    let known = had.clone();
                    let request =
                        known.as_ref().map_or(Had::Nothing, |it| Had::Tagged(it.0.clone()));
                    match Due::of(served, &order(*cut), &request) {
                        Due::Document(tag) => {
                            if let Some((before, at)) = known {
                                let is_newer = (0..2).all(|kind| cut[kind] >= at[kind]);
                                assert!(is_newer || tag.version == before.version, "{choices}");
                            }
                            let at =
                                had.map_or(*cut, |(_, at)| [0, 1].map(|it| cut[it].max(at[it])));
                            let is_same = text(at) == tag.version;
                            had = Some((tag, if is_same { at } else { *cut }));
                        }
                        Due::Nothing(tag) => assert_eq!(Some(tag), known.map(|it| it.0)),
                        Due::Later => late += 1,
                    }
                }
            }
        }
    }
    assert!(late > 1000, "{late}");
}

#[test]
fn tags_are_read_as_written() {
    let tag = DocumentTag { version: 0x9012_dbc5_9615_6371, order: DocumentOrder::of([16, 0, 1]) };
    assert_eq!(tag.to_string(), "\"9012dbc596156371.10.0.1\"");
    assert_eq!(DocumentTag::read(&tag.to_string()), Some(tag));
    for other in ["\"9012dbc596156371.\"", "9012dbc596156371", "\"12\"", "\"9012dbc596156371.g\""] {
        assert_eq!(DocumentTag::read(other), None, "{other}");
    }
}
