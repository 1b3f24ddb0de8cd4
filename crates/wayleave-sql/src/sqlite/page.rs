//! Reads a page through an index, where its order alone would need every row.
//!
//! An index does not give SQLite two orders that plans need: times, sorted by a function of ours,
//! and nullable columns, whose NULLs come last. The first is read up to the last time that the page
//! can hold; the second as two reads, values and then NULLs. The meaning of a plan does not change.

use std::sync::Arc;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, OrderBy, Predicate, Read, Rows, TextMatch};
use wayleave_plan::value::Value;

use super::dialect::SqliteDialect;
use super::dialect::probe::Probe;
use super::dialect::raw_domain::RawDomain;
use super::indexes::{Indexes, equal};
use super::types::Affinity;
use crate::compile::{NativeColumn, Tables};

/// Largest limit of a read that is treated as a page.
const MAX_PAGE_ROWS: u32 = 10_000;

/// Columns worth a probe: a read compares or sorts by them, and knowing their raw domain lets an
/// index serve.
pub(super) fn columns_to_probe<'a>(tables: &Tables<Affinity>, read: &'a Read) -> Vec<&'a Column> {
    let (mut found, predicate) = match read {
        Read::Rows(plan) => {
            // A column that equals one value needs no order.
            let order = plan.order.iter().map(|by| &by.column);
            let open = order.filter(|it| {
                let name = it.own_name();
                name.is_some_and(|name| equal(&plan.predicate, name).is_none())
            });
            (open.collect(), &plan.predicate)
        }
        Read::Groups(plan) => (Vec::new(), &plan.predicate),
        Read::Count { predicate, .. } => (Vec::new(), predicate),
    };
    compared(predicate, &mut found);
    found.retain(|column| column.own_name().is_some());
    found.retain(|column| match column.datatype {
        Datatype::Datetime => true,
        Datatype::Number => affinity(tables, column) != Some(Affinity::Real),
        Datatype::String | Datatype::Iri => {
            !affinity(tables, column).is_some_and(Affinity::is_text)
        }
        _ => false,
    });
    found.sort_unstable_by(|a, b| a.label().cmp(b.label()));
    found.dedup();
    found
}

fn affinity(tables: &Tables<Affinity>, column: &Column) -> Option<Affinity> {
    tables.own(column).map(|native| native.kind)
}

/// The columns of comparisons other than equality, which an index answers already, and of all
/// comparisons of times.
fn compared<'a>(predicate: &'a Predicate, found: &mut Vec<&'a Column>) {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                compared(part, found);
            }
        }
        Predicate::Granted(granted) => compared(granted, found),
        Predicate::Compare {
            column, comparison, ..
        } if column.datatype != Datatype::Number
            && (*comparison != Comparison::Eq || column.datatype == Datatype::Datetime) =>
        {
            found.push(column);
        }
        Predicate::In { column, .. }
        | Predicate::Like {
            column,
            place: TextMatch::Beginning | TextMatch::Whole,
            fold: false,
            ..
        } if column.datatype != Datatype::Number => found.push(column),
        _ => {}
    }
}

/// The row filter of a read.
pub(super) fn predicate(read: &Read) -> &Predicate {
    match read {
        Read::Rows(plan) => &plan.predicate,
        Read::Groups(plan) => &plan.predicate,
        Read::Count { predicate, .. } => predicate,
    }
}

/// The probes for these columns that an index answers.
pub(super) fn probes(indexes: &Indexes, columns: &[&Column], read: &Read) -> Vec<Probe> {
    let predicate = predicate(read);
    let ask = |column: &&Column| {
        let name = column.own_name()?;
        let nonconforming = indexes.nonconforming(name);
        Some(Probe {
            column: (*column).clone(),
            equal: indexes.leading_equalities(name, predicate)?,
            nonconforming: nonconforming.filter(|_| column.datatype == Datatype::Datetime),
        })
    };
    columns.iter().filter_map(ask).collect()
}

/// How a page is read from the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PageStrategy {
    /// With one statement for the plan.
    Direct,
    /// Only the rows whose first order column is NULL are left.
    Nulls(Rows),
    /// Its rows are counted first, up to the limit.
    Counted(Box<CountedPage>),
}

/// A page that reads the rows with a value in the first order column, and then those without.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountedPage {
    /// The rows with a value.
    pub(super) values: Rows,
    /// The rows without one, if there may be any.
    nulls: Option<Rows>,
    /// Whether the column is a datetime whose index order only approximates the order of times.
    is_approximate: bool,
}

/// A read of some of a page's rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PagePart {
    pub(super) rows: Rows,
    /// A predicate that holds for all of them, and bounds the scan.
    pub(super) bound: Predicate,
}

impl PagePart {
    /// A part without a bound.
    pub(super) const fn all(rows: Rows) -> Self {
        Self {
            rows,
            bound: Predicate::True,
        }
    }
}

/// Chooses the strategy of a read; counted only if an index orders by its first column.
pub(super) fn strategy(
    dialect: &SqliteDialect,
    tables: &Tables<Affinity>,
    read: &Read,
    is_reached: impl FnOnce(&Rows) -> bool,
) -> PageStrategy {
    let Read::Rows(plan) = read else {
        return PageStrategy::Direct;
    };
    let Some((first, rest)) = plan.order.split_first() else {
        return PageStrategy::Direct;
    };
    let Some(native) = tables.own(&first.column) else {
        return PageStrategy::Direct;
    };
    if plan.per_parent.is_some() || plan.limit > MAX_PAGE_ROWS {
        return PageStrategy::Direct;
    }
    let nullable = is_nullable(first, native);
    let after = plan.after.as_deref().and_then(<[Value]>::split_first);
    if let Some((Value::Null, later)) = after
        && nullable
    {
        return PageStrategy::Nulls(nulls(plan, first, rest, Some(later.to_vec())));
    }
    let is_approximate = matches!(
        dialect.raw_domain(&first.column),
        RawDomain::Texts | RawDomain::Numbers
    ) && first.column.datatype == Datatype::Datetime;
    let hidden = nullable && after.is_some() && dialect.is_raw(&first.column, native.kind);
    if !(is_approximate || hidden) || !is_reached(plan) {
        return PageStrategy::Direct;
    }
    let mut values = plan.clone();
    if nullable {
        let is_value = Predicate::IsNull {
            column: first.column.clone(),
            negated: true,
        };
        values.predicate = both(&plan.predicate, is_value);
    }
    if let Some(by) = values.order.first_mut() {
        by.nullable = false;
    }
    PageStrategy::Counted(Box::new(CountedPage {
        values,
        nulls: nullable.then(|| nulls(plan, first, rest, None)),
        is_approximate,
    }))
}

impl CountedPage {
    /// The reads whose rows, in sequence, are the page's, given the number of values and the last
    /// time that the page can hold.
    pub(super) fn parts(self, count: u32, last: Value) -> Vec<PagePart> {
        let Self {
            values,
            nulls,
            is_approximate,
        } = self;
        if count < values.limit {
            let left = values.limit - count;
            let nulls = nulls.map(|nulls| Rows {
                limit: left,
                ..nulls
            });
            return std::iter::once(values)
                .chain(nulls)
                .map(PagePart::all)
                .collect();
        }
        let mut bound = Predicate::True;
        if is_approximate
            && last != Value::Null
            && let Some(first) = values.order.first()
        {
            bound = Predicate::Compare {
                column: first.column.clone(),
                comparison: if first.descending {
                    Comparison::Gte
                } else {
                    Comparison::Lte
                },
                value: last,
            };
        }
        vec![PagePart {
            rows: values,
            bound,
        }]
    }
}

fn is_nullable(by: &OrderBy, native: &NativeColumn<Affinity>) -> bool {
    by.nullable && !native.not_null
}

/// The rows of a page that have no value in its order's first column.
fn nulls(plan: &Rows, first: &OrderBy, rest: &[OrderBy], after: Option<Vec<Value>>) -> Rows {
    let is_null = Predicate::IsNull {
        column: first.column.clone(),
        negated: false,
    };
    Rows {
        columns: Arc::clone(&plan.columns),
        predicate: both(&plan.predicate, is_null),
        order: rest.to_vec(),
        after,
        per_parent: None,
        limit: plan.limit,
        previews: plan.previews,
    }
}

fn both(predicate: &Predicate, other: Predicate) -> Predicate {
    match predicate {
        Predicate::True => other,
        _ => Predicate::And(vec![predicate.clone(), other]),
    }
}
