//! Groups by masked keys. A store groups by the plain values, which gives the same groups: two
//! values have the same token exactly if they are equal. But it also orders by them, which would
//! reveal how they compare. So groups of equal rank are ordered by token here, once all groups of
//! that rank are read.

use std::cmp::Ordering;

use super::order::SortColumn;
use crate::mask::Masking;
use crate::refusal::{Code, Refusal, quoted};
use crate::request::AggregateRequest;
use crate::value::Value;

/// Maximum number of groups read to be ranked by token.
pub(super) const MAX_RANKED_GROUPS: u32 = 10_000;

/// The keys of groups, at least one of them masked.
#[derive(Debug, Clone)]
pub(super) struct MaskedKeys {
    /// Whether each key is masked.
    masked: Vec<bool>,
    /// Start after the group with these values of the order's columns.
    pub(super) after: Option<Vec<Value>>,
}

impl MaskedKeys {
    pub(super) fn new(masks: &[Option<Masking>]) -> Option<Self> {
        let masked: Vec<bool> = masks.iter().map(Option::is_some).collect();
        let after = None;
        masked.contains(&true).then_some(Self { masked, after })
    }

    fn is_masked(&self, place: usize) -> bool {
        self.masked.get(place).copied().unwrap_or(false)
    }

    /// Moves masked keys to the end of the order, where they only make it total. Refuses to sort by
    /// one, because tokens have no rank.
    pub(super) fn put_last(
        &self,
        order: &mut [SortColumn],
        request: &AggregateRequest,
        header: &[String],
    ) -> Result<(), Refusal> {
        for key in &request.sort {
            let place = header.iter().position(|name| *name == key.name);
            if place.is_some_and(|place| self.is_masked(place)) {
                let message = format!(
                    "groups cannot be sorted by {}: it is masked",
                    quoted(&key.name)
                );
                let plain = header.iter().enumerate();
                let plain = plain.filter(|(place, _)| !self.is_masked(*place));
                return Err(Refusal::new(Code::InvalidSort, message)
                    .param("sort")
                    .allowed(plain.map(|(_, name)| name.clone())));
            }
        }
        order.sort_by_key(|(place, _)| self.is_masked(*place));
        Ok(())
    }

    /// Ranks the groups, and returns those from the start of the page on and whether more follow
    /// them.
    pub(super) fn ranked(
        &self,
        rows: Vec<Vec<Value>>,
        cut: bool,
        order: &[usize],
        limit: usize,
    ) -> Result<(Vec<Vec<Value>>, bool), Refusal> {
        let most = usize::try_from(MAX_RANKED_GROUPS).unwrap_or(usize::MAX);
        let is_cut = cut || rows.len() > most;
        let ranks = order.iter().copied().filter(|it| !self.is_masked(*it));
        let ranks: Vec<usize> = ranks.collect();
        let tokens = order.iter().copied().filter(|it| self.is_masked(*it));
        let tokens: Vec<usize> = tokens.collect();
        let mut groups = rows;
        // The last rank may continue beyond what was read.
        if let (true, Some(last)) = (is_cut, groups.last().cloned()) {
            groups.retain(|group| !is_same(group, &last, &ranks));
        }
        for rank in groups.chunk_by_mut(|a, b| is_same(a, b, &ranks)) {
            rank.sort_by(|a, b| by_token(a, b, &tokens));
        }
        if let Some(after) = &self.after {
            let is_at = |group: &Vec<Value>| {
                let at = order.iter().map(|place| group.get(*place));
                at.eq(after.iter().map(Some))
            };
            // A group that no longer exists ends the walk.
            let end = groups.iter().position(is_at);
            let end = end.ok_or_else(|| too_many_or_gone(is_cut))?;
            groups.drain(..=end);
        }
        if is_cut && groups.len() <= limit {
            return Err(too_many_or_gone(true));
        }
        Ok((groups, is_cut))
    }
}

fn is_same(a: &[Value], b: &[Value], places: &[usize]) -> bool {
    places.iter().all(|place| a.get(*place) == b.get(*place))
}

/// Compares groups by token; groups without a value come last.
fn by_token(a: &[Value], b: &[Value], places: &[usize]) -> Ordering {
    let text = |group: &[Value], place: usize| match group.get(place) {
        Some(Value::Text(text)) => (false, text.clone()),
        _ => (true, crate::value::Text::default()),
    };
    let each = places.iter().map(|it| text(a, *it).cmp(&text(b, *it)));
    each.fold(Ordering::Equal, Ordering::then)
}

fn too_many_or_gone(is_cut: bool) -> Refusal {
    if is_cut {
        let message = format!(
            "grouping by a masked field ranks at most {MAX_RANKED_GROUPS} groups, and this page needs more; narrow them with `filter`"
        );
        return Refusal::new(Code::ResultTooLarge, message).param("group_by");
    }
    let message = "the groups changed since this walk began; repeat the call without `cursor`";
    Refusal::new(Code::InvalidCursor, message)
        .param("cursor")
        .retry_with("cursor")
}
