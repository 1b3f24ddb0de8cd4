use super::*;
use crate::mapping::Datatype;

/// Fields of every datatype, and one hop to an `owner` with the same fields.
struct Fields;

impl FieldTypes for Fields {
    fn datatype(&self, path: &Path) -> Result<Datatype, UnknownPath> {
        let unknown = || UnknownPath {
            message: format!("there is no `{path}`"),
            hint: None,
        };
        let name = match path.0.as_slice() {
            [name] => name,
            [relation, name] if relation == "owner" => name,
            _ => return Err(unknown()),
        };
        match name.as_str() {
            "first" | "last" => Ok(Datatype::String),
            "qty" | "other" => Ok(Datatype::Integer),
            "price" | "cost" => Ok(Datatype::Decimal),
            "weight" => Ok(Datatype::Number),
            "open" => Ok(Datatype::Boolean),
            "born" => Ok(Datatype::Date),
            "sent" | "due" => Ok(Datatype::Datetime),
            "link" => Ok(Datatype::Iri),
            "extra" => Ok(Datatype::Json),
            _ => Err(unknown()),
        }
    }
}

fn field(text: &str, datatype: Datatype) -> Result<Formula<Path>, ExpressionError> {
    type_field(&parse(text)?, &Fields, datatype)
}

#[test]
fn expressions_have_the_datatype_their_parts_give() {
    use Datatype::{Boolean, Date, Decimal, Integer, Number, String};
    for (text, datatype) in [
        ("first || ' ' || last", String),
        ("first || '-' || qty", String),
        ("link || ''", String),
        ("qty + other * 2", Integer),
        ("price * qty * (1 - cost)", Decimal),
        ("qty / other", Decimal),
        ("qty + 170141183460469231731687303715884105727", Integer),
        ("qty + 170141183460469231731687303715884105728", Decimal),
        ("-price", Decimal),
        ("weight * qty + price", Number),
        ("coalesce(owner.price, 0)", Decimal),
        ("if(sent > due, 'late', 'on time')", String),
        ("if(open, price, null)", Decimal),
        ("round(price / 3, 2)", Decimal),
        ("sent > '2026-01-31T00:00:00Z'", Boolean),
        (
            "born >= '2026-01-31' and not open or first is null",
            Boolean,
        ),
        ("coalesce(born, '1970-01-01')", Date),
        ("coalesce('1970-01-01', born)", Date),
        ("qty", Decimal),
    ] {
        match field(text, datatype) {
            Ok(formula) => assert_eq!(formula.datatype, datatype, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn what_cannot_be_is_told_where_it_stands() {
    use Datatype::{Boolean, Decimal, Integer, String};
    for (text, datatype, span, part) in [
        ("first + last", String, 0..5, "expected a number"),
        ("first || price", String, 9..14, "joins texts"),
        ("nobody || first", String, 0..6, "there is no `nobody`"),
        ("owner.owner.first", String, 0..17, "there is no"),
        ("sum(price)", Decimal, 0..10, "needs many records"),
        ("if(qty, 1, 2)", Integer, 3..6, "expected a condition"),
        ("open > open", Boolean, 0..11, "cannot be compared"),
        ("first = qty", Boolean, 0..11, "cannot be compared"),
        ("born = '2026-02-30'", Boolean, 0..19, "cannot be compared"),
        ("round(weight, 2)", Decimal, 6..12, "floating-point"),
        ("round(price, 99)", Decimal, 13..15, "digits"),
        ("price", String, 0..5, "datatype `decimal`"),
        ("weight", Decimal, 0..6, "datatype `number`"),
        ("1 + 1", Integer, 0..5, "at least one field"),
        ("null", String, 0..4, "always null"),
        ("extra is null", Boolean, 0..5, "json"),
        ("coalesce(first)", String, 0..15, "two values"),
        ("if(open, first, qty)", String, 0..20, "in common"),
    ] {
        let error = field(text, datatype).expect_err(text);
        assert_eq!(error.span, span, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn what_is_no_expression_is_told_where_it_stands() {
    for (text, span) in [
        ("", 0..0),
        ("first ||", 8..8),
        ("(price", 6..6),
        ("price)", 5..6),
        ("'open", 0..5),
        ("\"first\"", 0..1),
        ("price; drop table x", 5..6),
        ("first last", 6..10),
        ("sqrt(price)", 0..4),
        ("1.", 0..2),
        ("1e9", 0..1),
        ("a.b.c.d.e.f", 0..11),
        ("owner.", 6..6),
        ("first is 3", 9..10),
        ("price % 2", 6..7),
        ("/* */ price", 0..1),
        ("and", 0..3),
        ("a = b = c", 6..7),
        ("prix\u{e9}", 4..6),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.span, span, "{text}: {error}");
    }
}

#[test]
fn no_text_exhausts_the_stack() {
    for text in [
        "(".repeat(999),
        "-".repeat(999),
        "not ".repeat(249),
        "if(".repeat(333),
        "a+".repeat(499) + "a",
        "a||".repeat(333),
        "x".repeat(10_000),
    ] {
        assert!(parse(&text).is_err(), "{}…", &text[..20]);
    }
}

#[test]
fn measures_are_made_of_aggregates() {
    let measure = |text: &str| type_measure(&parse(text)?, &Fields);
    for (text, datatype) in [
        ("sum(price * qty)", Datatype::Decimal),
        ("sum(qty)", Datatype::Integer),
        (
            "sum(price) / count_distinct(owner.first)",
            Datatype::Decimal,
        ),
        (
            "100 * sum(if(open, price, 0)) / sum(price)",
            Datatype::Decimal,
        ),
        ("count()", Datatype::Integer),
        ("count(*)", Datatype::Integer),
        ("avg(weight)", Datatype::Number),
        ("max(sent)", Datatype::Datetime),
        ("round(avg(price), 2)", Datatype::Decimal),
    ] {
        match measure(text) {
            Ok(formula) => assert_eq!(formula.datatype, datatype, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
    for (text, part) in [
        ("price", "a value for each record"),
        ("sum(price) + qty", "a value for each record"),
        ("sum(sum(price))", "needs many records"),
        ("sum(first)", "`sum` does not apply to `string`"),
        ("sum()", "takes one value"),
        ("sum(price, qty)", "takes one value"),
        ("1", "must contain an aggregate"),
        (
            "count_distinct(weight)",
            "`count_distinct` does not apply to `number`",
        ),
        ("max(open)", "`max` does not apply to `boolean`"),
    ] {
        let error = measure(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {error}");
    }
}
