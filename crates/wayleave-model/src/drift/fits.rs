//! Which columns a field can be read from.

use crate::mapping::{Datatype, SourceKind};

/// Whether a store of that kind can give values of a column of datatype `column` as values of a
/// field of datatype `field`, exactly.
///
/// PostgreSQL and MySQL say what a column holds. SQLite and files hold dates, decimals and
/// JSON as text or numbers, so there a mapping may say more than the store does; and a declared
/// type there promises nothing, so it may say less: whatever is held has a form as text.
pub fn fits(kind: SourceKind, column: Datatype, field: Datatype) -> bool {
    use Datatype::{Boolean, Date, Datetime, Decimal, Integer, Iri, Json, Number, String};
    let loose = matches!(
        kind,
        SourceKind::Sqlite | SourceKind::Files | SourceKind::Rdf
    );
    if column == field {
        return true;
    }
    match (column, field) {
        (String, Iri) | (Iri, String) | (Integer, Decimal | Number) | (Decimal, Number) => true,
        // MySQL has no booleans of its own.
        (Integer, Boolean) | (Boolean, Integer) => loose || kind == SourceKind::Mysql,
        (String, Date | Datetime | Decimal | Json)
        | (Integer | Number, Datetime)
        | (Number, Decimal | Integer)
        | (_, String)
        | (Date | Datetime, Date | Datetime | Integer | Number)
        | (Decimal, Integer) => loose,
        _ => false,
    }
}
