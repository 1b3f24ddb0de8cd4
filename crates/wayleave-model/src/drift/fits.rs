//! Which columns a field can be read from.

use crate::mapping::{Datatype, SourceKind};

/// Whether a store of that kind can give values of a column of datatype `column` as values of a
/// field of datatype `field`, exactly.
///
/// Whatever a column holds has a form as text, also what is of no other datatype: infinity, or
/// the day zero. PostgreSQL and MySQL say what a column holds. SQLite and files hold dates,
/// decimals and JSON as text or numbers, so there a mapping may say more than the store does.
pub fn fits(kind: SourceKind, column: Datatype, field: Datatype) -> bool {
    use Datatype::{Boolean, Date, Datetime, Decimal, Integer, Iri, Json, Number, String};
    let loose = is_loose(kind);
    if column == field {
        return true;
    }
    match (column, field) {
        (_, String | Iri) | (Integer, Decimal | Number) | (Decimal, Number) => true,
        // MySQL has no booleans of its own.
        (Integer, Boolean) | (Boolean, Integer) => loose || kind == SourceKind::Mysql,
        (String, Date | Datetime | Decimal | Json)
        | (Integer | Number, Datetime)
        | (Number, Decimal | Integer)
        | (Date | Datetime, Date | Datetime | Integer | Number)
        | (Decimal, Integer) => loose,
        _ => false,
    }
}

/// Whether a column of datatype `column` is likely what a field of datatype `field` was read
/// from: of a store that says what a column holds, a text was a text.
pub(super) fn resembles(kind: SourceKind, column: Datatype, field: Datatype) -> bool {
    fits(kind, column, field) && (is_loose(kind) || field.is_text() == column.is_text())
}

/// Whether the store's word for what a column holds is no promise.
const fn is_loose(kind: SourceKind) -> bool {
    matches!(
        kind,
        SourceKind::Sqlite | SourceKind::Files | SourceKind::Rdf
    )
}
