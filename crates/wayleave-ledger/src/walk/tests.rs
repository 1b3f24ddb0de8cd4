//! Every way to corrupt a chain, in memory: exhaustively for a small one, at random for others.

use proptest::prelude::*;
use wayleave_model::digest::Digest;
use wayleave_model::grant::{Claim, Claims, Scope, StreamTerms, Terms, TokenKind, TokenSecret};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Ratification;

use super::*;
use crate::chain::EntryHash;
use crate::event::{NewGrant, NewToken};
use crate::signing::{EntrySignature, UnlockedKey};
use crate::verify::{Witness, WitnessedHead};

fn source(name: &str) -> Event {
    let (name, env, who) = (name.to_owned(), "DSN".to_owned(), "ana".to_owned());
    Event::SourceAdded {
        name,
        kind: SourceKind::Sqlite,
        env,
        who,
    }
}

fn seal(events: impl IntoIterator<Item = Event>) -> Vec<SealedEntry> {
    let mut chain: Vec<SealedEntry> = Vec::new();
    for (place, event) in events.into_iter().enumerate() {
        let (kind, body) = event.encode().unwrap();
        let at = i64::try_from(place).unwrap() * 1_000;
        chain.push(SealedEntry::seal(
            chain.last().map(SealedEntry::head),
            at,
            kind,
            body,
        ));
    }
    chain
}

fn small() -> Vec<SealedEntry> {
    let digest = Digest::from_bytes(b"one");
    let (who, note) = ("ana".to_owned(), "why".to_owned());
    seal([
        Event::LedgerCreated { ledger: "a".into() },
        source("crm"),
        Event::DatasetRatified(Ratification {
            dataset: "crm".into(),
            digest,
            replaces: None,
            who,
            note,
        }),
        Event::DatasetActivated {
            dataset: "crm".into(),
            digest,
            revision: 1,
            who: "b".into(),
        },
        Event::DatasetDeactivated {
            dataset: "crm".into(),
            revision: 2,
            who: "b".into(),
        },
        grant(digest),
        Event::TokenIssued(NewToken {
            token: "t_abcd".into(),
            kind: TokenKind::Client,
            hash: TokenSecret::from_bits(TokenKind::Client, &[1; 32]).hash(),
            scopes: [Scope::Runtime, Scope::Dev].into_iter().collect(),
            grants: ["g_abcd".to_owned()].into(),
            claims: Claims::from([("email".to_owned(), Claim::Text("é@b".into()))]),
            label: "desk".into(),
            expires: Some(7),
            who: "b".into(),
        }),
        narrowed(digest),
        Event::GrantRevoked {
            grant: "g_efgh".into(),
            who: "b".into(),
            note: "n".into(),
        },
        Event::TokenRevoked {
            token: "t_abcd".into(),
            who: "b".into(),
            note: "n".into(),
        },
    ])
}

fn grant(mapping: Digest) -> Event {
    let stream = StreamTerms {
        relations: ["r".to_owned()].into(),
        fields: ["id".to_owned()].into(),
        rows: Some(r#"{"x": {"gte": 0.1}}"#.parse().unwrap()),
        masks: std::collections::BTreeMap::new(),
    };
    Event::GrantCreated(NewGrant {
        grant: "g_abcd".into(),
        terms: Terms {
            dataset: "crm".into(),
            connection: "eu".into(),
            mapping,
            streams: [("people".to_owned(), stream)].into(),
            capabilities: ["hire".to_owned()].into(),
        },
        expires: None,
        purpose: "p".into(),
        who: "b".into(),
    })
}

fn narrowed(mapping: Digest) -> Event {
    let Event::GrantCreated(mut narrower) = grant(mapping) else {
        unreachable!("a grant is made");
    };
    narrower.grant = "g_efgh".into();
    narrower.expires = Some(9);
    narrower.terms.capabilities.clear();
    Event::GrantNarrowed {
        replaces: "g_abcd".into(),
        narrower,
    }
}

/// Walks a chain against a known last entry, as `verify` does.
fn walk(chain: &[SealedEntry], known: Head) -> Result<(), Problem> {
    let known = WitnessedHead {
        head: known,
        witness: Witness::HeadFile,
    };
    let mut walk = ChainWalk::default();
    for sealed in chain {
        walk.step(sealed)?;
        known.check_at(sealed.head())?;
    }
    known.check_end(walk.seq())
}

fn first_bad(chain: &[SealedEntry], known: Head) -> Option<u64> {
    walk(chain, known)
        .expect_err("the harm must be found")
        .seq()
}

fn head(chain: &[SealedEntry]) -> Head {
    chain.last().unwrap().head()
}

/// Every entry that differs from this one in a single bit. An entry cannot hold text that is not
/// UTF-8; such text is refused where it is read.
fn flips(entry: &SealedEntry) -> Vec<SealedEntry> {
    let bits = |length: usize| (0..length * 8).map(|bit| (bit / 8, 1_u8 << (bit % 8)));
    let text = |text: &str, put: &dyn Fn(String) -> SealedEntry| -> Vec<SealedEntry> {
        bits(text.len())
            .filter_map(|(byte, mask)| {
                let mut bytes = text.as_bytes().to_vec();
                bytes[byte] ^= mask;
                String::from_utf8(bytes).ok().map(put)
            })
            .collect()
    };
    let hash = |hash: EntryHash, put: &dyn Fn(EntryHash) -> SealedEntry| -> Vec<SealedEntry> {
        bits(32)
            .map(|(byte, mask)| {
                let mut bytes = *hash.as_bytes();
                bytes[byte] ^= mask;
                put(EntryHash::from_bytes(bytes))
            })
            .collect()
    };
    let mut all = text(&entry.kind, &|kind| SealedEntry {
        kind,
        ..entry.clone()
    });
    all.extend(text(&entry.body, &|body| SealedEntry {
        body,
        ..entry.clone()
    }));
    all.extend(hash(entry.prev, &|prev| SealedEntry {
        prev,
        ..entry.clone()
    }));
    all.extend(hash(entry.hash, &|hash| SealedEntry {
        hash,
        ..entry.clone()
    }));
    all.extend((0..64).map(|bit| SealedEntry {
        seq: entry.seq ^ (1 << bit),
        ..entry.clone()
    }));
    all.extend((0..64).map(|bit| SealedEntry {
        at: entry.at ^ (1 << bit),
        ..entry.clone()
    }));
    all
}

#[test]
fn an_honest_chain_has_no_problem() {
    assert_eq!(walk(&small(), head(&small())), Ok(()));
}

#[test]
fn every_flipped_bit_is_found_at_its_entry() {
    let chain = small();
    for (place, entry) in chain.iter().enumerate() {
        for harmed in flips(entry) {
            let mut chain = chain.clone();
            chain[place] = harmed.clone();
            assert_eq!(
                first_bad(&chain, head(&small())),
                Some(entry.seq),
                "{harmed:?}"
            );
        }
    }
}

#[test]
fn every_dropped_entry_is_found_at_its_place() {
    let chain = small();
    for place in 0..chain.len() {
        let mut cut = chain.clone();
        cut.remove(place);
        assert_eq!(first_bad(&cut, head(&chain)), Some(chain[place].seq));
    }
}

#[test]
fn every_cut_tail_is_found_at_its_first_lost_entry() {
    let chain = small();
    for kept in 0..chain.len() {
        let lost = u64::try_from(kept).unwrap() + 1;
        assert_eq!(first_bad(&chain[..kept], head(&chain)), Some(lost));
    }
}

#[test]
fn every_swap_is_found_at_the_first_of_the_two() {
    let chain = small();
    for one in 0..chain.len() {
        for other in one + 1..chain.len() {
            let mut swapped = chain.clone();
            swapped.swap(one, other);
            assert_eq!(first_bad(&swapped, head(&chain)), Some(chain[one].seq));
            // Also with corrected sequence numbers.
            swapped[one].seq = chain[one].seq;
            swapped[other].seq = chain[other].seq;
            assert_eq!(first_bad(&swapped, head(&chain)), Some(chain[one].seq));
        }
    }
}

#[test]
fn every_inserted_copy_is_found() {
    let chain = small();
    for place in 0..=chain.len() {
        for copied in &chain {
            let mut longer = chain.clone();
            longer.insert(place, copied.clone());
            let expected = u64::try_from(place).unwrap() + 1;
            // Before its original a copy *is* the original, and the original is the copy.
            let expected = if copied.seq == expected {
                expected + 1
            } else {
                expected
            };
            assert_eq!(first_bad(&longer, head(&chain)), Some(expected));
        }
    }
}

#[test]
fn an_entry_sealed_into_the_middle_is_found() {
    let chain = small();
    for place in 1..chain.len() {
        let (kind, body) = source("intruder").encode().unwrap();
        let forged = SealedEntry::seal(Some(chain[place - 1].head()), 0, kind, body);
        let mut harmed = chain.clone();
        harmed[place] = forged;
        let expected = chain[place].seq + u64::from(place + 1 < chain.len());
        assert_eq!(first_bad(&harmed, head(&chain)), Some(expected));
    }
}

#[test]
fn a_whole_chain_that_breaks_the_rules_is_found() {
    let chain = seal([
        Event::LedgerCreated { ledger: "a".into() },
        source("crm"),
        source("crm"),
    ]);
    let problem = walk(&chain, head(&chain)).unwrap_err();
    assert!(
        matches!(problem, Problem::Unlawful { seq: 3, .. }),
        "{problem}"
    );
    let chain = seal([source("crm")]);
    assert_eq!(first_bad(&chain, head(&chain)), Some(1));
}

#[test]
fn a_chain_of_another_ledger_is_found() {
    let other = seal([
        Event::LedgerCreated { ledger: "b".into() },
        source("crm"),
        source("hr"),
    ]);
    let problem = walk(&other, head(&small()[..3])).unwrap_err();
    assert!(matches!(problem, Problem::Rewritten { .. }), "{problem}");
}

/// A corruption of a chain, with positions to be taken modulo its length.
#[derive(Debug, Clone)]
enum Harm {
    Flip(usize, usize),
    Drop(usize),
    Cut(usize),
    Swap(usize, usize),
    Copy(usize, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        (any::<usize>(), any::<usize>()).prop_map(|(entry, bit)| Harm::Flip(entry, bit)),
        any::<usize>().prop_map(Harm::Drop),
        any::<usize>().prop_map(Harm::Cut),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Harm::Swap(one, other)),
        (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Harm::Copy(from, to)),
    ]
}

fn inflict(chain: &mut Vec<SealedEntry>, harm: &Harm) {
    let length = chain.len();
    if length == 0 {
        return;
    }
    match *harm {
        Harm::Flip(entry, bit) => {
            let flips = flips(&chain[entry % length]);
            chain[entry % length] = flips[bit % flips.len()].clone();
        }
        Harm::Drop(entry) => drop(chain.remove(entry % length)),
        Harm::Cut(kept) => chain.truncate(kept % length),
        Harm::Swap(one, other) => chain.swap(one % length, other % length),
        Harm::Copy(from, to) => chain.insert(to % length, chain[from % length].clone()),
    }
}

proptest! {
    #[test]
    fn any_mixture_of_harms_is_found(
        names in prop::collection::btree_set("[a-z][a-z0-9]{0,8}", 0..12),
        harms in prop::collection::vec(harm(), 1..5),
    ) {
        let created = Event::LedgerCreated { ledger: "a".into() };
        let chain = seal(std::iter::once(created).chain(names.iter().map(|name| source(name))));
        prop_assert_eq!(walk(&chain, head(&chain)), Ok(()));
        let mut harmed = chain.clone();
        for harm in &harms {
            inflict(&mut harmed, harm);
        }
        // Corruptions may undo one another.
        prop_assert_eq!(walk(&harmed, head(&chain)).is_ok(), harmed == chain);
    }
}

/// A chain whose decisions are signed.
fn signed() -> Vec<SealedEntry> {
    let ana = UnlockedKey::from_seed([1; 32]);
    let added = Event::OwnerAdded {
        owner: "ana".into(),
        key: ana.key().clone(),
        who: "ana".into(),
    };
    let mut chain = seal([Event::LedgerCreated { ledger: "a".into() }]);
    for event in [added, source("crm"), source("erp")] {
        let (kind, body) = event.encode().unwrap();
        let entry = SealedEntry::seal(chain.last().map(SealedEntry::head), 5, kind, body);
        let signature = EntrySignature::sign(&ana, ana.key(), &entry.message()).unwrap();
        chain.push(entry.with_signature(signature.to_string()));
    }
    chain
}

/// Walks a chain, and returns the index of the first problem.
fn first_problem(chain: &[SealedEntry]) -> Option<usize> {
    let mut walk = ChainWalk::default();
    chain.iter().position(|sealed| walk.step(sealed).is_err())
}

#[test]
fn an_altered_entry_is_refused_however_well_its_hashes_are_made() {
    let chain = signed();
    assert_eq!(first_problem(&chain), None);
    // Seals all entries from this one on again, with the signatures they have.
    let resealed = |mut chain: Vec<SealedEntry>, from: usize| {
        for place in from..chain.len() {
            let head = place.checked_sub(1).map(|before| chain[before].head());
            let it = chain[place].clone();
            let again = SealedEntry::seal(head, it.at, it.kind, it.body);
            chain[place] = match it.signature {
                Some(signature) => again.with_signature(signature),
                None => again,
            };
        }
        chain
    };
    for place in 1..chain.len() {
        for byte in 0..chain[place].body.len() {
            let mut altered = chain.clone();
            let mut body = altered[place].body.clone().into_bytes();
            body[byte] ^= 1;
            let Ok(body) = String::from_utf8(body) else {
                continue;
            };
            altered[place].body = body;
            assert_eq!(first_problem(&resealed(altered, place)), Some(place));
        }
        let mut later = chain.clone();
        later[place].at += 1;
        assert_eq!(first_problem(&resealed(later, place)), Some(place));
        let mut unsigned = chain.clone();
        unsigned[place].signature = None;
        assert_eq!(first_problem(&resealed(unsigned, place)), Some(place));
        // At another position, or after another entry, its signature is invalid.
        let mut moved = chain.clone();
        let copy = moved[place].clone();
        moved.push(copy);
        let last = moved.len() - 1;
        assert_eq!(first_problem(&resealed(moved, last)), Some(last));
    }
    let mut without = chain.clone();
    without.remove(2);
    assert_eq!(first_problem(&resealed(without, 2)), Some(2));
}
