use proptest::prelude::*;

use super::*;

fn key(secret: u8) -> MaskKey {
    MaskKey::new([secret; 32])
}

fn masking(mask: &str, datatype: Datatype) -> Masking {
    Masking::new(mask.parse().unwrap(), datatype, "g1", Some(&key(1)))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn shown(mask: &str, datatype: Datatype, value: Value) -> Value {
    masking(mask, datatype).apply(value)
}

#[test]
fn redact_shows_the_same_of_everything() {
    for value in [
        Value::Null,
        Value::Malformed,
        text(""),
        text("x".repeat(1 << 20).as_str()),
        Value::Integer(1),
        Value::Boolean(true),
        Value::List(vec![Value::Null, text("a")]),
        Value::Json(Box::new(serde_json::json!({"a": 1}))),
    ] {
        assert_eq!(shown("redact", Datatype::String, value), text(REDACTED));
    }
}

#[test]
fn last4_shows_four_characters_of_nine_or_more() {
    for (value, expected) in [
        ("", "****"),
        ("12345678", "****"),
        ("123456789", "****6789"),
        ("DE02120300000000202051", "****2051"),
        ("äöüßäöüß", "****"),
        ("日本語日本語日本語", "****語日本語"),
    ] {
        assert_eq!(
            shown("last4", Datatype::String, text(value)),
            text(expected)
        );
    }
    let huge = format!("{}wxyz", "x".repeat(1 << 20));
    assert_eq!(
        shown("last4", Datatype::String, text(&huge)),
        text("****wxyz")
    );
    let card = Value::Integer(4_111_111_111_111_111);
    assert_eq!(shown("last4", Datatype::Integer, card), text("****1111"));
    let decimal = Value::Decimal("123456.789".into());
    assert_eq!(shown("last4", Datatype::Decimal, decimal), text("****.789"));
    assert_eq!(shown("last4", Datatype::String, Value::Null), Value::Null);
    assert_eq!(
        shown("last4", Datatype::String, Value::Malformed),
        Value::Malformed
    );
}

#[test]
fn year_shows_the_year_in_utc() {
    for (days, year) in [
        (0, 1970),
        (-1, 1969),
        (19_722, 2023),
        (19_723, 2024),
        (-719_528, 0),
    ] {
        let expected = Value::Integer(year);
        assert_eq!(shown("year", Datatype::Date, Value::Date(days)), expected);
        let last = Value::Datetime((i64::from(days) + 1) * MICROS_PER_DAY - 1);
        assert_eq!(shown("year", Datatype::Datetime, last), expected);
    }
    // Beyond the calendar there is no year, and nothing else is shown instead.
    assert_eq!(
        shown("year", Datatype::Date, Value::Date(i32::MAX)),
        text(REDACTED)
    );
    assert_eq!(
        shown("year", Datatype::Datetime, Value::Datetime(i64::MAX)),
        text(REDACTED)
    );
    assert_eq!(shown("year", Datatype::Date, Value::Null), Value::Null);
}

#[test]
fn bucket_shows_the_range_of_its_width() {
    let integer = Value::Integer;
    let decimal = |text: &str| Value::Decimal(text.into());
    for (value, expected) in [
        (integer(0), "[0,100)"),
        (integer(99), "[0,100)"),
        (integer(100), "[100,200)"),
        (integer(-1), "[-100,0)"),
        (integer(-100), "[-100,0)"),
        (decimal("199.99"), "[100,200)"),
        (decimal("-0.01"), "[-100,0)"),
        (decimal("-100"), "[-100,0)"),
        (Value::Number(-0.5), "[-100,0)"),
        (Value::Number(1e15), "[1000000000000000,1000000000000100)"),
        (integer(i128::MAX), REDACTED),
        (Value::Number(1e300), REDACTED),
        (decimal(&"9".repeat(60)), REDACTED),
    ] {
        let datatype = match value {
            Value::Integer(_) => Datatype::Integer,
            Value::Number(_) => Datatype::Number,
            _ => Datatype::Decimal,
        };
        assert_eq!(
            shown("bucket:100", datatype, value.clone()),
            text(expected),
            "{value:?}"
        );
    }
}

#[test]
fn a_mask_that_does_not_fit_or_has_no_key_shows_nothing() {
    let born = Value::Date(0);
    assert_eq!(shown("last4", Datatype::Date, born.clone()), text(REDACTED));
    let token = Mask::Token(TokenScope::Grant);
    let keyless = Masking::new(token, Datatype::Date, "g1", None);
    assert_eq!(keyless.apply(born), text(REDACTED));
    assert_eq!(keyless.mask(), Mask::Redact);
    assert_eq!(keyless.open("tok_x", Datatype::Date), None);
}

#[test]
fn a_list_is_masked_value_by_value() {
    let list = Value::List(vec![text("123456789"), Value::Null]);
    let expected = Value::List(vec![text("****6789"), Value::Null]);
    assert_eq!(shown("last4", Datatype::String, list), expected);
}

#[test]
fn tokens_of_two_grants_or_projects_do_not_compare() {
    let token = Mask::Token(TokenScope::Grant);
    let shared = Mask::Token(TokenScope::Project);
    let of = |mask, grant, secret| Masking::new(mask, Datatype::String, grant, Some(&key(secret)));
    let ours = of(token, "g1", 1);
    let value = text("ada@example.org");
    let shown = ours.apply(value.clone());
    assert_eq!(shown, of(token, "g1", 1).apply(value.clone()));
    for other in [of(token, "g2", 1), of(token, "g1", 2), of(shared, "g1", 1)] {
        assert_ne!(shown, other.apply(value.clone()));
        let Value::Text(token) = &shown else {
            panic!("a token is a text")
        };
        assert_eq!(other.open(token, Datatype::String), None);
        assert_ne!(ours, other);
    }
    assert_eq!(
        of(shared, "g1", 1).apply(value.clone()),
        of(shared, "g2", 1).apply(value)
    );
}

#[test]
fn a_token_hides_the_length_within_a_block_and_long_values_altogether() {
    let length = |value: &str| match shown("token", Datatype::String, text(value)) {
        Value::Text(token) => token.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(length("a"), length("a@example.org"));
    assert_eq!(length(&"x".repeat(300)), length(&"x".repeat(1 << 20)));
    let masking = masking("token", Datatype::String);
    let Value::Text(long) = masking.apply(text(&"x".repeat(300))) else {
        panic!("a token is a text")
    };
    assert_eq!(masking.open(&long, Datatype::String), None);
}

#[test]
fn no_altered_token_opens() {
    let masking = masking("token", Datatype::String);
    let Value::Text(token) = masking.apply(text("ada@example.org")) else {
        panic!("a token is a text")
    };
    assert_eq!(
        masking.open(&token, Datatype::String),
        Some(text("ada@example.org"))
    );
    assert_eq!(masking.open(&token, Datatype::Integer), None);
    for at in 0..token.len() {
        let mut bytes = token.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(bytes).unwrap();
        assert_eq!(masking.open(&altered, Datatype::String), None, "{altered}");
        assert_eq!(masking.open(&token[..at], Datatype::String), None);
    }
    for text in ["", "tok_", "ada@example.org", &"tok_A".repeat(500)] {
        assert_eq!(masking.open(text, Datatype::String), None, "{text}");
    }
}

#[test]
fn an_integer_and_the_decimal_it_equals_have_one_token() {
    let integer = masking("token", Datatype::Integer).apply(Value::Integer(5));
    let decimal = masking("token", Datatype::Decimal).apply(Value::Decimal("5".into()));
    assert_eq!(integer, decimal);
    assert_ne!(integer, masking("token", Datatype::String).apply(text("5")));
}

proptest! {
    #[test]
    fn a_token_opens_to_its_value_and_differs_for_another(a in ".{0,40}", b in ".{0,40}") {
        let masking = masking("token", Datatype::String);
        let (one, other) = (masking.apply(text(&a)), masking.apply(text(&b)));
        prop_assert_eq!(a == b, one == other);
        if let Value::Text(token) = &one {
            prop_assert_eq!(masking.open(token, Datatype::String), Some(text(&a)));
        }
    }

    #[test]
    fn values_of_every_datatype_come_back(days in any::<i32>(), micros in any::<i64>(), float in -1e300..1e300, whole in any::<i64>()) {
        for (datatype, value) in [
            (Datatype::Date, Value::Date(days)),
            (Datatype::Datetime, Value::Datetime(micros)),
            (Datatype::Number, Value::Number(float)),
            (Datatype::Integer, Value::Integer(whole.into())),
            (Datatype::Boolean, Value::Boolean(days % 2 == 0)),
        ] {
            let masking = masking("token", datatype);
            let Value::Text(token) = masking.apply(value.clone()) else {
                panic!("a token is a text")
            };
            prop_assert_eq!(masking.open(&token, datatype), Some(value));
        }
    }
}
