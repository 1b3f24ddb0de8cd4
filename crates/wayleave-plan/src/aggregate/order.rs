//! The order of groups.

use crate::refusal::{Code, Refusal, quoted};
use crate::request::AggregateRequest;

/// Where a column of the order is in the header, and whether it goes from the largest down.
pub(super) type Place = (usize, bool);

/// Where each column of the order is in the header, and whether it goes from the largest down: what
/// is asked for, or the default, made total by the keys.
pub(super) fn places(
    request: &AggregateRequest,
    header: &[String],
    keys: usize,
) -> Result<Vec<Place>, Refusal> {
    let mut order: Vec<Place> = Vec::new();
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
            // The period is the last of the keys, and the first measure follows them.
            Some(_) => (keys - 1, false),
            None => (keys, true),
        });
    }
    for place in 0..keys {
        if !order.iter().any(|(known, _)| *known == place) {
            order.push((place, false));
        }
    }
    // One group of everything has no order.
    if keys == 0 {
        order.clear();
    }
    Ok(order)
}
