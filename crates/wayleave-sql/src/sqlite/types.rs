//! What a declared type means. In SQLite it is a wish: any column may hold any value.

use wayleave_model::mapping::Datatype;

/// The datatype of a declared type: by the names people use, then by SQLite's affinity rules.
///
/// A name that fits neither is text, which every value has a form in; SQLite would call it
/// numeric.
pub(super) fn datatype(declared: &str) -> Datatype {
    let declared = declared.to_ascii_uppercase();
    let name = declared.split('(').next().unwrap_or_default().trim();
    match name {
        "BOOLEAN" | "BOOL" => Datatype::Boolean,
        "DATE" => Datatype::Date,
        "DECIMAL" | "NUMERIC" | "NUMBER" | "MONEY" => Datatype::Decimal,
        "JSON" | "JSONB" => Datatype::Json,
        _ if name.starts_with("DATETIME") || name.starts_with("TIMESTAMP") => Datatype::Datetime,
        _ if name.contains("INT") => Datatype::Integer,
        _ if has_text_affinity(name) || name.contains("BLOB") => Datatype::String,
        _ if ["REAL", "FLOA", "DOUB"].iter().any(|it| name.contains(it)) => Datatype::Number,
        _ => Datatype::String,
    }
}

/// The length in `VARCHAR(40)`; only of text.
pub(super) fn max_length(declared: &str) -> Option<u32> {
    let declared = declared.to_ascii_uppercase();
    let (name, rest) = declared.split_once('(')?;
    let affine = has_text_affinity(name) && !name.contains("INT");
    rest.split(')')
        .next()
        .filter(|_| affine)?
        .trim()
        .parse()
        .ok()
}

fn has_text_affinity(name: &str) -> bool {
    ["CHAR", "CLOB", "TEXT"].iter().any(|it| name.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_mean_what_people_mean_by_them() {
        for (declared, expected) in [
            ("INTEGER", Datatype::Integer),
            ("UNSIGNED BIG INT", Datatype::Integer),
            ("NVARCHAR(160)", Datatype::String),
            ("BOOLEAN", Datatype::Boolean),
            ("DATETIME", Datatype::Datetime),
            ("timestamp with time zone", Datatype::Datetime),
            ("DATE", Datatype::Date),
            ("DECIMAL(10, 2)", Datatype::Decimal),
            ("NUMERIC(10,2)", Datatype::Decimal),
            ("DOUBLE PRECISION", Datatype::Number),
            ("FLOAT", Datatype::Number),
            ("JSON", Datatype::Json),
            ("BLOB", Datatype::String),
            ("UUID", Datatype::String),
            ("", Datatype::String),
        ] {
            assert_eq!(datatype(declared), expected, "{declared}");
        }
    }

    #[test]
    fn only_text_has_a_length() {
        assert_eq!(max_length("NVARCHAR(160)"), Some(160));
        assert_eq!(max_length("varchar ( 8 )"), Some(8));
        assert_eq!(max_length("DECIMAL(10,2)"), None);
        assert_eq!(max_length("TEXT"), None);
    }
}
