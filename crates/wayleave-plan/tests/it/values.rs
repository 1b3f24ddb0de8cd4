//! Values: canonical text, total order, exact sums and means, and calendars.

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;
use serde_json::json;
use wayleave_model::mapping::Datatype;
use wayleave_plan::calendar::Calendar;
use wayleave_plan::plan::Granularity;
use wayleave_plan::value::{Value, average, mean, rounded, sum};

fn read(datatype: Datatype, text: &str) -> Option<Value> {
    Value::from_text(datatype, text).ok()
}

#[test]
fn values_are_written_in_their_one_canonical_form() {
    for (value, expected) in [
        (Value::Null, json!(null)),
        (
            Value::Integer(9_007_199_254_740_991),
            json!(9_007_199_254_740_991_i64),
        ),
        (
            Value::Integer(9_007_199_254_740_992),
            json!("9007199254740992"),
        ),
        (
            Value::Integer(-9_007_199_254_740_992),
            json!("-9007199254740992"),
        ),
        (Value::Number(-0.0), json!(0.0)),
        (Value::Number(1e300), json!(1e300)),
        (Value::Date(-719_162), json!("0001-01-01")),
        (Value::Date(20_512), json!("2026-02-28")),
        (Value::Datetime(0), json!("1970-01-01T00:00:00Z")),
        (Value::Datetime(-1), json!("1969-12-31T23:59:59.999999Z")),
        (Value::Datetime(1_500_000), json!("1970-01-01T00:00:01.5Z")),
        (
            Value::Json(Box::new(json!({"b": 1, "a": {"d": 1, "c": 2}}))),
            json!({"a": {"c": 2, "d": 1}, "b": 1}),
        ),
        (
            Value::List(vec![Value::Integer(1), Value::Null]),
            json!([1, null]),
        ),
    ] {
        assert_eq!(value.to_json().to_string(), expected.to_string());
    }
}

#[test]
fn only_unmistakable_spellings_are_read() {
    for (datatype, texts) in [
        (
            Datatype::Integer,
            &["", "-", "+1", "1.0", "1e3", " 1", "0x1", "١"][..],
        ),
        (
            Datatype::Decimal,
            &["", ".", "1.", ".5", "1e3", "+1", "1,5", "NaN", "inf"],
        ),
        (Datatype::Number, &["", "inf", "NaN", "1.", "0x1", "1e999"]),
        (Datatype::Boolean, &["", "TRUE", "1", "t", "yes"]),
        (
            Datatype::Date,
            &[
                "",
                "2026-2-1",
                "2026-02-30",
                "0000-01-01",
                "20260201",
                "2026-02-01T00:00:00Z",
            ],
        ),
        (
            Datatype::Datetime,
            &[
                "",
                "2026-02-01T00:00Z",
                "2026-02-01T00:00:00",
                "2026-02-01T24:00:00Z",
                "2026-02-01T00:00:60Z",
                "2026-02-01T00:00:00+24:00",
                "2026-02-01T00:00:00.Z",
                "2026-02-01T00:00:00.0000001Z",
                "0001-01-01T00:00:00+01:00",
                "9999-12-31T23:59:59-01:00",
            ],
        ),
    ] {
        for text in texts {
            assert_eq!(read(datatype, text), None, "{datatype} {text:?}");
        }
    }
    assert_eq!(
        read(Datatype::Decimal, "-007.5000"),
        Some(Value::Decimal("-7.5".into()))
    );
    assert_eq!(
        read(Datatype::Datetime, "1970-01-01T01:00:00.250000000+01:00"),
        Some(Value::Datetime(250_000))
    );
    assert_eq!(
        read(Datatype::Datetime, "1970-01-02"),
        Some(Value::Datetime(86_400_000_000))
    );
}

#[test]
fn a_mean_of_numbers_is_rounded_once() {
    let numbers = [Value::Number(1_000_000_000_004.0), Value::Number(2.0)];
    assert_eq!(mean(&numbers), Value::Number(500_000_000_003.0));
    assert_eq!(mean(&[]), Value::Null);
}

#[test]
fn means_are_rounded_half_away_from_zero_to_six_digits() {
    for (total, count, expected) in [
        ("1", 3, "0.333333"),
        ("2", 3, "0.666667"),
        ("-2", 3, "-0.666667"),
        ("10", 4, "2.5"),
        ("0.000001", 2, "0.000001"),
        ("-0.000001", 2, "-0.000001"),
        ("0.000001", 3, "0"),
        ("0.0000005", 1, "0.000001"),
        ("0.00000049", 1, "0"),
        ("0.0000015", 3, "0.000001"),
        ("0.0000014999", 3, "0"),
        ("99999999999999999999.9999999", 1, "100000000000000000000"),
        ("0", 7, "0"),
    ] {
        let mean = average(&Value::Decimal(total.into()), count);
        assert_eq!(mean, Value::Decimal(expected.into()), "{total} / {count}");
    }
    assert_eq!(average(&Value::Integer(7), 2), Value::Decimal("3.5".into()));
    assert_eq!(average(&Value::Null, 2), Value::Null);
    assert_eq!(average(&Value::Integer(7), 0), Value::Null);
}

#[test]
fn sums_go_beyond_any_machine_integer() {
    let huge = Value::Integer(i128::MAX);
    let twice = Value::Decimal("340282366920938463463374607431768211454".into());
    assert_eq!(sum([&huge, &huge]), twice);
    assert_eq!(sum([]), Value::Null);
}

#[test]
fn floating_point_results_keep_twelve_digits() {
    assert_eq!(rounded(0.1 + 0.2).to_string(), "0.3");
    assert_eq!(
        sum([&Value::Number(0.1), &Value::Number(0.2)]),
        Value::Number(0.3)
    );
    assert_eq!(rounded(-0.0).to_string(), "0");
    assert_eq!(
        rounded(123_456_789_012_345.0).to_string(),
        "123456789012000"
    );
}

#[test]
fn periods_begin_where_the_zone_says() {
    for (zone, time, granularity, expected) in [
        (
            "UTC",
            "2026-03-31T23:30:00Z",
            Granularity::Month,
            "2026-03-01",
        ),
        (
            "Europe/Paris",
            "2026-03-31T23:30:00Z",
            Granularity::Month,
            "2026-04-01",
        ),
        (
            "America/New_York",
            "2026-01-01T03:00:00Z",
            Granularity::Year,
            "2025-01-01",
        ),
        (
            "UTC",
            "2026-11-15T10:00:00Z",
            Granularity::Week,
            "2026-11-09",
        ),
        (
            "UTC",
            "2026-11-15T10:00:00Z",
            Granularity::Quarter,
            "2026-10-01",
        ),
        (
            "UTC",
            "1969-12-31T23:59:59Z",
            Granularity::Day,
            "1969-12-31",
        ),
        (
            "Asia/Kolkata",
            "2026-01-01T10:45:31.5Z",
            Granularity::Hour,
            "2026-01-01T10:30:00Z",
        ),
        (
            "Asia/Kolkata",
            "2026-01-01T10:45:31.5Z",
            Granularity::Minute,
            "2026-01-01T10:45:00Z",
        ),
        // Clocks go back at 01:00 UTC: the local hour from 2 to 3 occurs twice.
        (
            "Europe/Paris",
            "2026-10-25T00:30:00Z",
            Granularity::Hour,
            "2026-10-25T00:00:00Z",
        ),
        (
            "Europe/Paris",
            "2026-10-25T01:30:00Z",
            Granularity::Hour,
            "2026-10-25T01:00:00Z",
        ),
        (
            "Europe/Paris",
            "2026-10-25T01:30:00Z",
            Granularity::Day,
            "2026-10-25",
        ),
    ] {
        let value = read(Datatype::Datetime, time).unwrap();
        let period = Calendar::new(zone).unwrap().period(&value, granularity);
        assert_eq!(
            period.to_json(),
            json!(expected),
            "{granularity:?} of {time} in {zone}"
        );
    }
    assert!(Calendar::new("Nowhere/Land").is_err());
}

fn decimal() -> impl Strategy<Value = (i128, u32)> {
    (-1_000_000_000_000_i128..1_000_000_000_000, 0..8_u32)
}

fn written(units: i128, scale: u32) -> Value {
    let ten = 10_i128.pow(scale);
    let sign = if units < 0 { "-" } else { "" };
    let text = format!(
        "{sign}{}.{:0width$}",
        units.abs() / ten,
        units.abs() % ten,
        width = scale as usize
    );
    read(Datatype::Decimal, text.trim_end_matches('.')).unwrap()
}

proptest! {
    #[test]
    fn sums_are_those_of_whole_numbers(parts in prop::collection::vec(decimal(), 1..8)) {
        let values: Vec<Value> = parts.iter().map(|(units, scale)| written(*units, *scale)).collect();
        let total: i128 = parts.iter().map(|(units, scale)| units * 10_i128.pow(8 - scale)).sum();
        prop_assert_eq!(sum(&values), written(total, 8));
    }

    #[test]
    fn sums_are_exact_however_wide(
        parts in prop::collection::vec(prop_oneof![
            any::<i128>().prop_map(|units| (units.to_string(), String::new())),
            (r"-?[1-9][0-9]{30,45}", r"[0-9]{0,39}[1-9]"),
        ], 1..8),
    ) {
        // In units of the fortieth digit after the point.
        let total: BigInt = parts
            .iter()
            .map(|(whole, fraction)| format!("{whole}{fraction:0<40}").parse::<BigInt>().unwrap())
            .sum();
        let values = parts.iter().map(|(whole, fraction)| {
            if fraction.is_empty() {
                return Value::Integer(whole.parse().unwrap());
            }
            read(Datatype::Decimal, &format!("{whole}.{fraction}")).unwrap()
        });
        let values: Vec<Value> = values.collect();
        let digits = format!("{:0>41}", total.magnitude().to_string());
        let (whole, fraction) = digits.split_at(digits.len() - 40);
        let sign = if total.sign() == Sign::Minus { "-" } else { "" };
        let expected = read(Datatype::Decimal, &format!("{sign}{whole}.{fraction}")).unwrap();
        prop_assert_eq!(sum(&values).to_text(), expected.to_text());
    }

    #[test]
    fn means_are_those_of_whole_numbers((units, scale) in decimal(), count in 1..5_000_u64) {
        // |units| / (10^scale * count), in millionths, plus a half, truncated.
        let divisor = 10_i128.pow(scale) * i128::from(count);
        let millionths = (units.abs() * 1_000_000 * 2 + divisor) / (divisor * 2);
        let expected = written(millionths * units.signum(), 6);
        prop_assert_eq!(average(&written(units, scale), count), expected);
    }

    #[test]
    fn datetimes_and_dates_survive_writing(micros in -62_135_596_800_000_000_i64..253_402_300_800_000_000, days in -719_162..2_932_896_i32) {
        for (datatype, value) in [(Datatype::Datetime, Value::Datetime(micros)), (Datatype::Date, Value::Date(days))] {
            prop_assert_eq!(read(datatype, &value.to_text().unwrap()), Some(value));
        }
    }

    #[test]
    fn reading_never_panics(text in r"\PC{0,40}", tail in "[-+0-9TZ:. ]{0,36}") {
        for datatype in Datatype::ALL {
            for text in [&text, &tail, &format!("2026-01-01{tail}")] {
                if let Some(value) = read(*datatype, text) {
                    prop_assert!(value.to_text().is_some() || *text == "null");
                }
            }
        }
    }
}
