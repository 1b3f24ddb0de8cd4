//! Decides which columns a field can be read from.

use crate::mapping::{Datatype, SourceKind};

/// Whether a store of that kind can convert values of datatype `column` exactly to datatype
/// `field`.
///
/// Every value has a text form, also those outside every other datatype, such as infinity or the
/// day zero. PostgreSQL and MySQL enforce the types of columns. SQLite and files store dates,
/// decimals and JSON as text or numbers, so there a mapping may be more specific than the store.
pub fn fits(kind: SourceKind, column: Datatype, field: Datatype) -> bool {
    use Datatype::{Boolean, Date, Datetime, Decimal, Integer, Iri, Json, Number, String};
    let loose = !kind.enforces_types();
    if column == field {
        return true;
    }
    match (column, field) {
        (_, String | Iri) | (Integer, Decimal | Number) | (Decimal, Number) => true,
        (Integer, Boolean) | (Boolean, Integer) => !kind.has_booleans(),
        (String, Date | Datetime | Decimal | Json)
        | (Integer | Number, Datetime)
        | (Number, Decimal | Integer)
        | (Date | Datetime, Date | Datetime | Integer | Number)
        | (Decimal, Integer) => loose,
        _ => false,
    }
}

/// Whether a field of datatype `field` was probably read from a column of datatype `column`. In a
/// store that enforces types, a text field was a text column.
pub(super) fn resembles(kind: SourceKind, column: Datatype, field: Datatype) -> bool {
    fits(kind, column, field) && (!kind.enforces_types() || field.is_text() == column.is_text())
}
