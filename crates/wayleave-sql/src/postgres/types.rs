//! What PostgreSQL's types mean to a mapping: domains stand for their base, arrays for many of
//! their element, enums for their labels.

use std::collections::HashMap;

use wayleave_model::mapping::Datatype;

/// One row of `pg_type`, as far as it matters here.
#[derive(Debug, Clone)]
pub(super) struct Type {
    pub(super) name: String,
    /// `b` base, `d` domain, `e` enum, `r` and `m` ranges.
    pub(super) class: String,
    /// The element type where this is an array, else 0.
    pub(super) element: u32,
    /// The type a domain is over, else 0.
    pub(super) base: u32,
    /// The domain's own modifier, such as a length.
    pub(super) modifier: i32,
    pub(super) not_null: bool,
}

/// The types of a database, by object id.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) types: HashMap<u32, Type>,
    pub(super) labels: HashMap<u32, Vec<String>>,
}

/// What a column of some type holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ColumnMeaning {
    pub(super) datatype: Datatype,
    pub(super) many: bool,
    pub(super) one_of: Vec<String>,
    pub(super) max_length: Option<u32>,
    /// Whether a domain on the way forbids NULL.
    pub(super) not_null: bool,
}

impl Types {
    /// Follows domains and one array to the type that holds the values.
    pub(super) fn meaning(&self, id: u32, modifier: i32) -> ColumnMeaning {
        let (mut id, mut modifier, mut many, mut not_null) = (id, modifier, false, false);
        // A domain over a domain is common, a chain this long is not; a cycle cannot be made.
        for _ in 0..32 {
            match self.types.get(&id) {
                Some(Type {
                    class,
                    base,
                    modifier: own,
                    not_null: forbids,
                    ..
                }) if class == "d" => {
                    id = *base;
                    modifier = if *own >= 0 { *own } else { modifier };
                    // NOT NULL on an element's domain says nothing of the array.
                    not_null |= *forbids && !many;
                }
                Some(Type { element, .. }) if *element != 0 && !many => {
                    id = *element;
                    many = true;
                }
                _ => break,
            }
        }
        let name = self.types.get(&id).map_or("", |it| it.name.as_str());
        ColumnMeaning {
            datatype: datatype(name),
            many,
            one_of: self.labels.get(&id).cloned().unwrap_or_default(),
            max_length: max_length(name, modifier),
            not_null,
        }
    }
}

/// The datatype of a base type. One not named has a text form, and that is served.
pub(super) fn datatype(name: &str) -> Datatype {
    match name {
        "int2" | "int4" | "int8" | "oid" => Datatype::Integer,
        "numeric" => Datatype::Decimal,
        "float4" | "float8" => Datatype::Number,
        "bool" => Datatype::Boolean,
        "date" => Datatype::Date,
        "timestamp" | "timestamptz" => Datatype::Datetime,
        "json" | "jsonb" => Datatype::Json,
        _ => Datatype::String,
    }
}

/// The length of `varchar(n)` and `char(n)`, which the modifier holds with four added.
fn max_length(name: &str, modifier: i32) -> Option<u32> {
    let bounded = matches!(name, "varchar" | "bpchar");
    u32::try_from(modifier.checked_sub(4)?)
        .ok()
        .filter(|it| bounded && *it > 0)
}
