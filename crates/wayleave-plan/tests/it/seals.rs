//! Cursors and bookmarks open only for the call, caller, grant and mapping that they were made for.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::QueryRequest;
use wayleave_plan::seal::{BOOKMARK_HOURS, CURSOR_HOURS, KeyRing, Seal, SealingKey};
use wayleave_plan::value::Value;
use wayleave_plan::view::View;

use crate::fixture::{NOW, active_datasets, arguments, at, cases, keys, local, ratified_again};

fn plan(view: &View, request: Json, seal: Seal<'_>) -> Result<QueryPlan, Refusal> {
    QueryPlan::new(
        view,
        &QueryRequest::parse(&arguments(request)).unwrap(),
        seal,
    )
}

/// A query and the cursor of its first page.
fn first(view: &View, request: Json, seal: Seal<'_>) -> String {
    let plan = plan(view, request, seal).unwrap();
    let row = |no: i128| {
        vec![
            Value::Text("eu".into()),
            Value::Integer(no),
            Value::Datetime(1_700_000_000_000_000),
        ]
    };
    let page = plan.page(&[row(1), row(2)]);
    assert_eq!(page.records().len(), 1);
    page.next_cursor(1, seal).unwrap()
}

fn query() -> Json {
    json!({"stream": "orders", "fields": ["no"], "filter": {"paid": true, "items": {"gt": 1}}, "limit": 1})
}

fn with(mut request: Json, name: &str, value: impl Into<Json>) -> Json {
    request[name] = value.into();
    request
}

fn refused(answer: Result<QueryPlan, Refusal>) -> bool {
    answer.is_err_and(|refusal| refusal.code == Code::InvalidCursor)
}

#[test]
fn a_cursor_continues_its_own_call_and_is_short() {
    let (view, keys) = (local(), keys());
    let cursor = first(&view, query(), at(&keys, NOW));
    println!(
        "a cursor of a datetime, a text and an integer: {} characters",
        cursor.len()
    );
    assert!(cursor.len() <= 56, "{cursor}");
    plan(
        &view,
        with(query(), "cursor", cursor.clone()),
        at(&keys, NOW),
    )
    .unwrap();
    // Page size, count and the order of a filter's keys do not matter.
    let other = json!({"stream": "orders", "connection_id": "shop", "fields": ["no"], "limit": 7,
        "count": "exact", "filter": {"items": {"gt": 1}, "paid": true}, "cursor": cursor});
    plan(&view, other, at(&keys, NOW)).unwrap();
}

#[test]
fn the_same_call_gives_the_same_cursor() {
    let (view, keys) = (local(), keys());
    let cursor = first(&view, query(), at(&keys, NOW));
    assert_eq!(cursor, first(&view, query(), at(&keys, NOW + 60)));
}

#[test]
fn a_cursor_is_refused_by_every_other_call() {
    let (view, keys) = (local(), keys());
    let cursor = first(&view, query(), at(&keys, NOW));
    let continued = with(query(), "cursor", cursor);
    for (name, value) in [
        ("filter", json!({"paid": true})),
        ("filter", json!({"paid": false, "items": {"gt": 1}})),
        ("sort", json!(["-amount"])),
        ("fields", json!(["no", "amount"])),
        ("fields", Json::Null),
        ("expand", json!(["lines"])),
        ("changes_since", json!("beginning")),
        ("stream", json!("lines")),
    ] {
        let mut other = with(continued.clone(), name, value.clone());
        if name == "stream" {
            other = json!({"stream": "lines", "cursor": other["cursor"]});
        }
        assert!(
            refused(plan(&view, other, at(&keys, NOW))),
            "{name} {value}"
        );
    }
}

#[test]
fn a_cursor_is_refused_for_another_token_epoch_or_mapping() {
    let keys = keys();
    let seal = at(&keys, NOW);
    let continued = with(query(), "cursor", first(&local(), query(), seal));
    let other = |change: fn(&mut Package)| {
        let mut package = Package::local();
        change(&mut package);
        plan(
            &View::new(&active_datasets(), &package),
            continued.clone(),
            seal,
        )
    };
    assert!(other(|_| {}).is_ok());
    assert!(refused(other(
        |package| package.subject = "token-2".to_owned()
    )));
    assert!(refused(other(|package| package.epoch += 1)));
    let again = View::new(&ratified_again(), &Package::local());
    assert!(refused(plan(&again, continued, seal)));
}

#[test]
fn a_cursor_expires() {
    let (view, keys) = (local(), keys());
    let continued = with(query(), "cursor", first(&view, query(), at(&keys, NOW)));
    let after = |hours: i64| plan(&view, continued.clone(), at(&keys, NOW + hours * 3_600));
    assert!(after(CURSOR_HOURS).is_ok());
    assert!(refused(after(CURSOR_HOURS + 1)));
}

#[test]
fn a_cursor_made_while_the_clock_was_ahead_is_refused_once_it_is_right() {
    let (view, keys) = (local(), keys());
    let made = |ahead: i64| {
        let cursor = first(&view, query(), at(&keys, NOW + ahead * 3_600));
        plan(&view, with(query(), "cursor", cursor), at(&keys, NOW))
    };
    // Clocks may be set back a little.
    assert!(made(0).is_ok() && made(1).is_ok());
    for ahead in [2, CURSOR_HOURS, 365 * 24, 1_000_000] {
        assert!(refused(made(ahead)), "{ahead}");
    }
}

#[test]
fn a_bookmark_made_while_the_clock_was_ahead_is_refused_once_it_is_right() {
    let (view, keys) = (local(), keys());
    let walk = json!({"stream": "orders", "changes_since": "beginning"});
    for (ahead, is_refused) in [(1, false), (2, true), (365 * 24, true)] {
        let begun = plan(&view, walk.clone(), at(&keys, NOW + ahead * 3_600)).unwrap();
        let ended = begun.with_horizon(Value::Integer(9));
        let sealed = at(&keys, NOW + ahead * 3_600);
        let bookmark = ended.page(&[]).next_changes_since(0, sealed).unwrap();
        let next = with(walk.clone(), "changes_since", bookmark);
        let went_on = plan(&view, next, at(&keys, NOW));
        assert_eq!(went_on.is_err(), is_refused, "{ahead}");
    }
}

#[test]
fn a_bookmark_outlives_cursors_and_expires_too() {
    let (view, keys) = (local(), keys());
    let walk = json!({"stream": "orders", "changes_since": "beginning"});
    let begun = plan(&view, walk.clone(), at(&keys, NOW)).unwrap();
    let ended = begun.with_horizon(Value::Integer(9));
    let bookmark = ended
        .page(&[])
        .next_changes_since(0, at(&keys, NOW))
        .unwrap();
    let after = |hours: i64| {
        let next = with(walk.clone(), "changes_since", bookmark.clone());
        plan(&view, next, at(&keys, NOW + hours * 3_600))
    };
    assert!(after(BOOKMARK_HOURS).is_ok());
    assert!(refused(after(BOOKMARK_HOURS + 1)));
    // A bookmark is not a cursor, and does not open for another walk.
    let as_cursor = with(walk.clone(), "cursor", bookmark.clone());
    assert!(refused(plan(&view, as_cursor, at(&keys, NOW))));
    let filtered = json!({"stream": "orders", "changes_since": bookmark, "filter": {"paid": true}});
    assert!(refused(plan(&view, filtered, at(&keys, NOW))));
}

#[test]
fn a_rotated_key_still_opens_until_it_is_dropped() {
    let view = local();
    let key = |id: u8| SealingKey {
        id,
        secret: [id; 32],
    };
    let old = KeyRing::new(&key(1), &[]);
    let continued = with(query(), "cursor", first(&view, query(), at(&old, NOW)));
    let rotated = KeyRing::new(&key(2), &[key(1)]);
    assert!(plan(&view, continued.clone(), at(&rotated, NOW)).is_ok());
    assert_ne!(
        first(&view, query(), at(&rotated, NOW)),
        continued["cursor"]
    );
    let dropped = KeyRing::new(&key(2), &[]);
    assert!(refused(plan(&view, continued.clone(), at(&dropped, NOW))));
    // Knowing a key's number is not enough: the key itself differs.
    let forged = KeyRing::new(
        &SealingKey {
            id: 1,
            secret: [9; 32],
        },
        &[],
    );
    assert!(refused(plan(&view, continued, at(&forged, NOW))));
}

#[test]
fn a_ring_shows_no_secret() {
    assert_eq!(format!("{:?}", keys()), "KeyRing { ids: [1] }");
}

#[test]
fn no_mutated_cursor_is_accepted() {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ";
    let (view, keys) = (local(), keys());
    let seal = at(&keys, NOW);
    let cursor = first(&view, query(), seal);
    let mut request = QueryRequest::parse(&arguments(query())).unwrap();
    // A small generator with a fixed seed, so that every run is the same.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut tried = 0;
    while tried < cases(20_000) {
        let mut bytes = cursor.clone().into_bytes();
        for _ in 0..=random(3) {
            let place = random(bytes.len().max(1));
            match random(4) {
                0 => bytes[place] = ALPHABET[random(ALPHABET.len())],
                1 if bytes.len() > 1 => {
                    bytes.remove(place);
                }
                2 => bytes.insert(place, ALPHABET[random(ALPHABET.len())]),
                _ => bytes.truncate(place.max(1)),
            }
        }
        if bytes == cursor.as_bytes() || bytes.is_empty() {
            continue;
        }
        tried += 1;
        request.cursor = Some(String::from_utf8(bytes).unwrap());
        assert!(
            refused(QueryPlan::new(&view, &request, seal)),
            "{:?}",
            request.cursor
        );
    }
    println!("{tried} mutated cursors, none accepted");
}

#[test]
fn every_flipped_bit_of_a_cursor_is_noticed() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let (view, keys) = (local(), keys());
    let bytes = URL_SAFE_NO_PAD
        .decode(first(&view, query(), at(&keys, NOW)))
        .unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let continued = with(query(), "cursor", URL_SAFE_NO_PAD.encode(flipped));
        assert!(refused(plan(&view, continued, at(&keys, NOW))), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn no_text_is_a_cursor_by_chance(text in r"[A-Za-z0-9_-]{1,80}") {
        let (view, keys) = (local(), keys());
        let continued = with(query(), "cursor", text);
        prop_assert!(refused(plan(&view, continued, at(&keys, NOW))));
    }
}
