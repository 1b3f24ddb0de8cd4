//! Properties that hold for every mapping.

use proptest::prelude::*;
use wayleave_model::diff::diff;
use wayleave_model::digest::Digest;
use wayleave_model::parse::parse;
use wayleave_model::print::print;
use wayleave_model::ratify::Draft;
use wayleave_model::schema::EXAMPLE;

use crate::arbitrary::{mapping, mutations};

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back_as_the_same_mapping(mapping in mapping()) {
        let text = print(&mapping);
        let read = parse(text.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&mapping), "{}", text);
        prop_assert_eq!(print(&read.unwrap()), text, "printing is canonical");
    }

    #[test]
    fn a_mapping_does_not_differ_from_itself(mapping in mapping()) {
        prop_assert_eq!(diff(Some(&mapping), &mapping), vec![]);
        prop_assert!(!diff(None, &mapping).is_empty());
    }

    #[test]
    fn two_mappings_differ_exactly_when_a_change_is_told(a in mapping(), b in mapping()) {
        prop_assert_eq!(diff(Some(&a), &b).is_empty(), a == b);
    }

    #[test]
    fn every_entry_of_a_printed_mapping_points_at_its_own_bytes(mapping in mapping()) {
        let text = print(&mapping);
        let read = parse(text.as_bytes()).unwrap();
        for stream in &read.streams {
            prop_assert_eq!(&text[stream.name.span.clone()], stream.name.as_str());
            for field in &stream.fields {
                prop_assert_eq!(&text[field.name.span.clone()], field.name.as_str());
                prop_assert_eq!(
                    &text[field.datatype.span.clone()],
                    format!("\"{}\"", field.datatype)
                );
            }
        }
    }
}

proptest! {
    // Each case makes about two hundred changes.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_of_a_mapping_is_told(mapping in mapping(), at in any::<u32>()) {
        for mutated in mutations(&mapping, at) {
            prop_assert_ne!(&mutated, &mapping);
            prop_assert!(!diff(Some(&mapping), &mutated).is_empty(), "{:#?}", mutated);
            prop_assert!(!diff(Some(&mutated), &mapping).is_empty(), "{:#?}", mutated);
        }
    }
}

#[test]
fn the_digest_changes_with_any_byte() {
    let bytes = &EXAMPLE.as_bytes()[..512];
    let digest = Digest::from_bytes(bytes);
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1;
        assert_ne!(Digest::from_bytes(&changed), digest, "byte {at} replaced");
        changed.remove(at);
        assert_ne!(Digest::from_bytes(&changed), digest, "byte {at} removed");
    }
}

#[test]
fn the_digest_covers_bytes_that_the_mapping_does_not_show() {
    let propose = |bytes: &[u8]| Draft::new(bytes).propose(None);
    let proposed = propose(EXAMPLE.as_bytes()).unwrap();
    let mut unseen = 0;
    for at in (0..EXAMPLE.len()).step_by(7) {
        let mut changed = EXAMPLE.as_bytes().to_vec();
        changed.insert(at, b' ');
        let Ok(changed) = propose(&changed) else {
            continue;
        };
        assert_ne!(changed.digest(), proposed.digest(), "byte {at}");
        unseen += usize::from(changed.mapping() == proposed.mapping());
    }
    // A space between two words of the file changes nothing that the mapping says.
    assert!(unseen > 0);
}

#[test]
fn where_things_are_written_does_not_change_what_they_say() {
    let inline = r#"
        connections = [{ id = "a", source = "b" }]
        dataset = { name = "crm", kind = "sqlite" }
        streams.people = { type = "Person", key = ["id"], fields.id.datatype = "integer" }
    "#;
    let spread = "[dataset]\r\nname = 'crm'\r\nkind = \"sqlite\"\r\n[streams.people]\r\ntype = \"Person\"\r\nkey = [\r\n\"id\", # the key\r\n]\r\n[streams.people.fields.id]\r\ndatatype = \"integer\"\r\n[[connections]]\r\nid = \"a\"\r\nsource = \"b\"\r\n";
    let inline = parse(inline.as_bytes()).unwrap();
    assert_eq!(inline, parse(spread.as_bytes()).unwrap());
    assert_eq!(parse(print(&inline).as_bytes()).unwrap(), inline);
}
