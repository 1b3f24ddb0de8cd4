//! The order of groups.

use crate::plan::{Column, OrderBy};
use crate::refusal::{Code, Refusal, quoted};
use crate::request::AggregateRequest;

/// A header index, and whether the largest value comes first.
pub(super) type SortColumn = (usize, bool);

/// The order of the groups: the requested one, or the default; made total by the keys.
pub(super) fn sort_columns(
    request: &AggregateRequest,
    header: &[String],
    keys: usize,
) -> Result<Vec<SortColumn>, Refusal> {
    let mut order: Vec<SortColumn> = Vec::new();
    for key in &request.sort {
        let place = header.iter().position(|name| *name == key.name);
        let place = place.ok_or_else(|| {
            let message = format!(
                "{} is neither a group nor a measure here",
                quoted(&key.name)
            );
            Refusal::new(Code::InvalidSort, message)
                .param("sort")
                .allowed(header.iter().cloned())
                .near(&key.name)
        })?;
        order.push((place, key.descending));
    }
    if request.sort.is_empty() && keys > 0 {
        order.push(match request.group_by_time {
            // The period is the last key; the first measure follows the keys.
            Some(_) => (keys - 1, false),
            None => (keys, true),
        });
    }
    for place in 0..keys {
        if !order.iter().any(|(known, _)| *known == place) {
            order.push((place, false));
        }
    }
    // A single group needs no order.
    if keys == 0 {
        order.clear();
    }
    Ok(order)
}

/// The columns of the order; `columns` are those of the header.
#[expect(
    clippy::expect_used,
    reason = "a default would drop a sort key silently"
)]
pub(super) fn group_order(order: &[SortColumn], columns: &[Column]) -> Vec<OrderBy> {
    let keys = order.iter().map(|(place, descending)| OrderBy {
        column: columns
            .get(*place)
            .expect("the order is of header indexes, and each has a column")
            .clone(),
        descending: *descending,
        nullable: true,
    });
    keys.collect()
}
