//! Changes of a field.

use std::fmt::Display;

use super::dataset::{described, reordered};
use super::{ChangeKind, Changes, Risk, named, quoted_in_full, risks};
use crate::mapping::{AggregateOp, Datatype, Field, Origin, Scalar, Spanned, Stream};
use crate::mask::Mask;

/// Describes a new field.
pub(super) fn added(changes: &mut Changes, stream: &Stream, new: &Field) {
    let path = format!("streams.{}.fields.{}", stream.name, new.name);
    let from = match &new.origin {
        Origin::Column(column) if *column == new.name => String::new(),
        origin => format!(", {}", from_words(origin)),
    };
    let mask = new.mask.as_ref().map_or_else(String::new, |mask| {
        format!(", masked for every grant: {}, `{mask}`", mask.words())
    });
    let words = format!(
        "adds field `{}` ({}) to `{}`{from}{mask}",
        new.name,
        kind_of(new),
        stream.name
    );
    let secret = Risk::secret([new.name.as_str()]).or_else(|| origin_secret(&new.origin));
    changes.push(ChangeKind::FieldAdded, &path, words, risks([secret]));
    let what = format!("`{}` of `{}`", new.name, stream.name);
    described(changes, &path, &what, None, new.description.as_ref());
}

/// The origin of values, in words.
fn from_words(origin: &Origin) -> String {
    match origin {
        Origin::Column(column) => format!("read from column `{column}`"),
        Origin::Computed(expression) => {
            format!("computed as {}", quoted_in_full(expression.text()))
        }
    }
}

/// The risk of reading a column that looks secret, directly or in an expression.
fn origin_secret(origin: &Origin) -> Option<Risk> {
    match origin {
        Origin::Column(column) => Risk::secret([column.as_str()]),
        Origin::Computed(expression) => {
            let words = expression.text();
            let names = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            Risk::secret(names)
        }
    }
}

fn kind_of(field: &Field) -> String {
    let many = if field.many.value { "many " } else { "" };
    format!("{many}{}", field.datatype)
}

/// The field being compared.
struct FieldPath<'c> {
    changes: &'c mut Changes,
    path: String,
    /// The field in words: `` `status` of `people` ``.
    what: String,
}

impl FieldPath<'_> {
    fn push(&mut self, kind: ChangeKind, key: &str, words: String, risks: Vec<Risk>) {
        self.changes
            .push(kind, &format!("{}.{key}", self.path), words, risks);
    }
}

/// Describes the changes of a field.
pub(super) fn changed(changes: &mut Changes, stream: &Stream, old: &Field, new: &Field) {
    let Field {
        name,
        origin,
        datatype,
        predicate,
        description,
        required,
        many: _,
        generated,
        one_of,
        pattern,
        min_length,
        max_length,
        min_value,
        max_value,
        filter,
        sort,
        aggregate,
        mask,
    } = new;
    let mut place = FieldPath {
        path: format!("streams.{}.fields.{name}", stream.name),
        what: format!("`{name}` of `{}`", stream.name),
        changes,
    };
    place.origin(&old.origin, origin);
    place.datatype(old, new);
    place.predicate(&old.predicate, predicate);
    let (path, what) = (place.path.clone(), place.what.clone());
    described(
        place.changes,
        &path,
        &what,
        old.description.as_ref(),
        description.as_ref(),
    );
    place.required(old, required.value);
    place.generated(old, generated.value);
    place.values(&old.one_of, one_of, datatype.value);
    place.pattern(old.pattern.as_ref(), pattern.as_ref());
    place.bound(
        "min_length",
        old.min_length.as_ref(),
        min_length.as_ref(),
        RangeEnd::Least,
    );
    place.bound(
        "max_length",
        old.max_length.as_ref(),
        max_length.as_ref(),
        RangeEnd::Greatest,
    );
    place.bound(
        "min_value",
        old.min_value.as_ref(),
        min_value.as_ref(),
        RangeEnd::Least,
    );
    place.bound(
        "max_value",
        old.max_value.as_ref(),
        max_value.as_ref(),
        RangeEnd::Greatest,
    );
    place.used("filter", "filters name", old.filter.value, filter.value);
    place.used("sort", "sorting use", old.sort.value, sort.value);
    place.aggregates(&old.aggregate, aggregate);
    place.mask(old.mask.as_ref(), mask.as_ref());
}

/// The end of a range that a bound limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RangeEnd {
    Least,
    Greatest,
}

impl FieldPath<'_> {
    fn origin(&mut self, old: &Origin, new: &Origin) {
        if old == new {
            return;
        }
        let what = &self.what;
        let (key, words) = match (old, new) {
            (Origin::Column(old), Origin::Column(new)) => (
                "column",
                format!("reads {what} from column `{new}` instead of `{old}`"),
            ),
            (Origin::Computed(old), Origin::Computed(new)) => (
                "compute",
                format!(
                    "computes {what} as {} instead of {}",
                    quoted_in_full(new.text()),
                    quoted_in_full(old.text())
                ),
            ),
            (Origin::Column(_), Origin::Computed(_)) => (
                "compute",
                format!("{what} is now {}, and was stored", from_words(new)),
            ),
            (Origin::Computed(_), Origin::Column(_)) => (
                "column",
                format!("{what} is now {}, and was computed", from_words(new)),
            ),
        };
        let risks = risks([Some(Risk::Source), origin_secret(new)]);
        self.push(ChangeKind::ColumnChanged, key, words, risks);
    }

    fn datatype(&mut self, old: &Field, new: &Field) {
        let (before, now) = (kind_of(old), kind_of(new));
        if before != now {
            let words = format!("changes {} from {before} to {now}", self.what);
            self.push(ChangeKind::DatatypeChanged, "datatype", words, Vec::new());
        }
    }

    fn mask(&mut self, old: Option<&Spanned<Mask>>, new: Option<&Spanned<Mask>>) {
        let (old, new) = (old.map(|it| it.value), new.map(|it| it.value));
        let what = &self.what;
        let (words, widens) = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) if old == new => return,
            (None, Some(new)) => (
                format!("masks {what} for every grant: {}, `{new}`", new.words()),
                false,
            ),
            (Some(old), None) => (
                format!("no longer requires mask `{old}` for {what}: grants may show its values"),
                true,
            ),
            (Some(old), Some(new)) => (
                format!(
                    "masks {what} with `{new}` instead of `{old}`: {}",
                    new.words()
                ),
                !new.is_within(old),
            ),
        };
        let risks = risks([widens.then_some(Risk::Unmasked)]);
        self.push(ChangeKind::MaskChanged, "mask", words, risks);
    }

    fn predicate(&mut self, old: &Spanned<String>, new: &Spanned<String>) {
        if old != new {
            let words = format!(
                "gives {} the predicate `{new}` instead of `{old}`",
                self.what
            );
            self.push(ChangeKind::PredicateChanged, "predicate", words, Vec::new());
        }
    }

    fn required(&mut self, old: &Field, now: bool) {
        if now == old.required.value {
            return;
        }
        let (words, risks) = if now {
            (format!("requires {}", self.what), Vec::new())
        } else {
            (
                format!("no longer requires {}", self.what),
                vec![Risk::LostConstraint],
            )
        };
        self.push(ChangeKind::RequiredChanged, "required", words, risks);
    }

    fn generated(&mut self, old: &Field, now: bool) {
        if now == old.generated.value {
            return;
        }
        let (words, risks) = if now {
            (format!("leaves {} to the store", self.what), Vec::new())
        } else {
            (format!("lets writes give {}", self.what), vec![Risk::Write])
        };
        self.push(ChangeKind::GeneratedChanged, "generated", words, risks);
    }

    fn values(&mut self, old: &[Spanned<Scalar>], new: &[Spanned<Scalar>], datatype: Datatype) {
        let listed = |values: &[&Spanned<Scalar>]| {
            let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
            named(texts.iter().map(String::as_str))
        };
        let all: Vec<_> = new.iter().collect();
        let gained: Vec<_> = new.iter().filter(|value| !old.contains(value)).collect();
        let dropped: Vec<_> = old.iter().filter(|value| !new.contains(value)).collect();
        let what = self.what.clone();
        match (old.is_empty(), new.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let words = format!("narrows {what} to {}", listed(&all));
                self.push(ChangeKind::ValuesNarrowed, "one_of", words, Vec::new());
            }
            (false, true) => {
                let any = if datatype.is_text() {
                    "text"
                } else {
                    datatype.as_str()
                };
                let words = format!("widens {what} to any {any}");
                let risks = vec![Risk::LostConstraint];
                self.push(ChangeKind::ValuesWidened, "one_of", words, risks);
            }
            (false, false) => {
                if !gained.is_empty() {
                    let words = format!("widens {what} by {}", listed(&gained));
                    let risks = vec![Risk::LostConstraint];
                    self.push(ChangeKind::ValuesWidened, "one_of", words, risks);
                }
                if !dropped.is_empty() {
                    let words = format!("narrows {what}: no longer {}", listed(&dropped));
                    self.push(ChangeKind::ValuesNarrowed, "one_of", words, Vec::new());
                }
                let moved = gained.is_empty() && dropped.is_empty() && old != new;
                let path = format!("{}.one_of", self.path);
                reordered(self.changes, moved, &path, &format!("the values of {what}"));
            }
        }
    }

    fn pattern(&mut self, old: Option<&Spanned<String>>, new: Option<&Spanned<String>>) {
        let what = &self.what;
        let (words, risks) = match (old, new) {
            (None, Some(new)) => (
                format!("holds {what} to pattern {}", quoted_in_full(new)),
                Vec::new(),
            ),
            (Some(_), None) => (
                format!("lifts the pattern of {what}"),
                vec![Risk::LostConstraint],
            ),
            (Some(old), Some(new)) if old != new => {
                let words = format!(
                    "holds {what} to pattern {} instead of {}",
                    quoted_in_full(new),
                    quoted_in_full(old)
                );
                (words, vec![Risk::LostConstraint])
            }
            _ => return,
        };
        self.push(ChangeKind::PatternChanged, "pattern", words, risks);
    }

    fn bound<T: Ord + Display>(
        &mut self,
        key: &str,
        old: Option<&Spanned<T>>,
        new: Option<&Spanned<T>>,
        side: RangeEnd,
    ) {
        let what = &self.what;
        let lost = vec![Risk::LostConstraint];
        let (words, risks) = match (old, new) {
            (None, Some(new)) => (format!("sets `{key}` of {what} to {new}"), Vec::new()),
            (Some(old), None) => (format!("lifts `{key}` of {what}, which was {old}"), lost),
            (Some(old), Some(new)) if old != new => {
                let raised = new.value > old.value;
                let verb = if raised { "raises" } else { "lowers" };
                let looser = raised == (side == RangeEnd::Greatest);
                let words = format!("{verb} `{key}` of {what} from {old} to {new}");
                (words, if looser { lost } else { Vec::new() })
            }
            _ => return,
        };
        self.push(ChangeKind::BoundChanged, key, words, risks);
    }

    fn used(&mut self, key: &str, doing: &str, old: bool, new: bool) {
        if old != new {
            let no_longer = if new { "" } else { "no longer " };
            let words = format!("{no_longer}lets {doing} {}", self.what);
            self.push(ChangeKind::UseChanged, key, words, Vec::new());
        }
    }

    fn aggregates(&mut self, old: &[AggregateOp], new: &[AggregateOp]) {
        for (from, to, no_longer) in [(old, new, ""), (new, old, "no longer ")] {
            let differ = to
                .iter()
                .filter(|op| !from.contains(op))
                .map(|op| op.as_str());
            let differ: Vec<_> = differ.collect();
            if !differ.is_empty() {
                let words = format!(
                    "{no_longer}lets {} be aggregated by {}",
                    self.what,
                    named(differ)
                );
                self.push(ChangeKind::UseChanged, "aggregate", words, Vec::new());
            }
        }
    }
}
