//! Resolves misspelt names of streams, fields and relations.

use wayleave_model::nearest::nearest;
use wayleave_plan::view::{ConnectionView, FieldView, StreamView, View};

/// Maximum number of hops added to a path.
const MAX_HOPS: usize = 3;
/// Maximum number of paths of one length to try.
const MAX_PATHS: usize = 64;
/// Maximum number of segments of a name to resolve.
const MAX_SEGMENTS: usize = 8;

/// Normalizes a name: removes case, underscores, blanks and quotation marks.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).take(128).collect()
}

/// The approximate singular of a normalized name.
fn singular(name: &str) -> String {
    let plain = plain(name);
    if let Some(stem) = plain.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["ses", "xes", "zes", "ches", "shes"] {
        if plain.ends_with(ending) {
            return plain.strip_suffix("es").unwrap_or(&plain).to_owned();
        }
    }
    match plain.strip_suffix('s') {
        Some(stem) if !stem.ends_with('s') => stem.to_owned(),
        _ => plain,
    }
}

/// The only name with the same normalized form, or else the same singular.
fn alike<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let (same, one) = (plain(wanted), singular(wanted));
    let spelt = only(names.clone().filter(|it| plain(it) == same));
    spelt.or_else(|| only(names.filter(|it| singular(it) == one)))
}

fn only<'a>(mut found: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The visible stream that a name refers to.
pub(super) fn stream(view: &View, wanted: &str) -> Option<String> {
    let names: Vec<&str> = view.stream_names().collect();
    if names.contains(&wanted) {
        return Some(wanted.to_owned());
    }
    // As in SQL, possibly qualified by a schema.
    let last = wanted.rsplit('.').next().unwrap_or(wanted);
    let streams = view.connections().iter().flat_map(|it| &it.streams);
    let mut typed: Vec<&str> = streams
        .filter(|it| singular(it.type_name()) == singular(last))
        .map(StreamView::name)
        .collect();
    typed.dedup();
    let by_type = match typed.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let found = alike(last, names.iter().copied());
    let found = found.or(by_type);
    let found = found.or_else(|| nearest(last, names.iter().copied()));
    found.map(str::to_owned)
}

/// Resolves names within one stream.
#[derive(Clone, Copy)]
pub(super) struct Names<'v> {
    connection: &'v ConnectionView,
    stream: &'v StreamView,
}

impl<'v> Names<'v> {
    pub(super) fn new(connection: &'v ConnectionView, stream: &'v StreamView) -> Self {
        Self { connection, stream }
    }

    pub(super) fn stream(&self) -> &'v StreamView {
        self.stream
    }

    /// The names of the stream at the end of a to-one or to-many relation.
    pub(super) fn behind(&self, relation: &str) -> Option<Self> {
        let relation = self.stream.relation(relation)?;
        let stream = self.connection.stream(&relation.to)?;
        Some(Self::new(self.connection, stream))
    }

    /// The field at the end of a path.
    pub(super) fn view(&self, path: &str) -> Option<&'v FieldView> {
        let (hops, last) = path.rsplit_once('.').unwrap_or(("", path));
        let hops = hops.split('.').filter(|it| !it.is_empty());
        let mut at = *self;
        for hop in hops {
            at = at.one(hop)?;
        }
        at.stream.field(last)
    }

    fn one(&self, relation: &str) -> Option<Self> {
        let followed = self.stream.relation(relation)?;
        let is_to_one = self.stream.is_to_one(followed);
        is_to_one.then(|| self.behind(relation)).flatten()
    }

    /// The path that a name refers to, or the name itself if it is a path.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        if self.view(name).is_some() {
            return Some(name.to_owned());
        }
        let name = name.trim().replace("->", ".");
        let segments: Vec<&str> = name.split('.').map(str::trim).collect();
        if segments.len() > MAX_SEGMENTS {
            return None;
        }
        let (first, rest) = segments.split_first()?;
        // As in SQL, possibly qualified by the table.
        let unqualified = (!rest.is_empty() && singular(first) == singular(self.stream.name()))
            .then(|| self.field(&rest.join(".")));
        unqualified
            .flatten()
            .or_else(|| self.spelt(&segments, false))
            .or_else(|| self.titled(&segments))
            .or_else(|| self.farther(&segments))
            .or_else(|| self.spelt(&segments, true))
    }

    /// A path with the same normalized names; if `nearly`, its last field may be misspelt.
    fn spelt(&self, segments: &[&str], nearly: bool) -> Option<String> {
        let (last, hops) = segments.split_last()?;
        let mut at = *self;
        let mut path = String::new();
        for hop in hops {
            let relation = at.relation(hop)?;
            at = at.one(&relation)?;
            say!(path, "{relation}.");
        }
        let fields: Vec<&str> = at.stream.fields().map(FieldView::name).collect();
        let exact = fields.iter().copied().find(|it| it == last);
        let field = exact.or_else(|| alike(last, fields.iter().copied()));
        let near = || nearest(last, fields.iter().copied());
        let field = field.or_else(|| nearly.then(near).flatten())?;
        Some(format!("{path}{field}"))
    }

    /// The title of the target, where a to-one relation is named instead of a field.
    fn titled(&self, segments: &[&str]) -> Option<String> {
        let mut at = *self;
        let mut path = String::new();
        for hop in segments {
            let relation = at.relation(hop)?;
            at = at.one(&relation)?;
            say!(path, "{relation}.");
        }
        let title = at
            .stream
            .title()
            .or_else(|| at.stream.key_fields().first())?;
        Some(format!("{path}{}", title.name()))
    }

    /// Completes a path that lacks its first hops, if the shortest completion is unique.
    fn farther(&self, segments: &[&str]) -> Option<String> {
        let mut level = vec![(String::new(), *self)];
        for _ in 0..MAX_HOPS {
            let mut next: Vec<(String, Self)> = Vec::new();
            for (path, at) in &level {
                for relation in at.stream.relations() {
                    if let Some(behind) = at.one(&relation.name) {
                        next.push((format!("{path}{}.", relation.name), behind));
                    }
                    // Among very many paths, uniqueness is not checked.
                    if next.len() > MAX_PATHS {
                        return None;
                    }
                }
            }
            let found = next.iter().filter_map(|(path, at)| {
                let rest = at.spelt(segments, false)?;
                Some(format!("{path}{rest}"))
            });
            let found: Vec<String> = found.collect();
            match found.as_slice() {
                [] => level = next,
                [one] => return Some(one.clone()),
                _ => return None,
            }
        }
        None
    }

    /// The relation that a name refers to, by its own name or by its target stream.
    pub(super) fn relation(&self, name: &str) -> Option<String> {
        let relations = self.stream.relations();
        let names: Vec<&str> = relations.map(|it| it.name.as_str()).collect();
        if names.contains(&name) {
            return Some(name.to_owned());
        }
        if let Some(found) = alike(name, names.iter().copied()) {
            return Some(found.to_owned());
        }
        let leading = self
            .stream
            .relations()
            .filter(|it| singular(&it.to) == singular(name));
        let leading: Vec<&str> = leading.map(|it| it.name.as_str()).collect();
        match leading.as_slice() {
            [one] => Some((*one).to_owned()),
            _ => nearest(name, names.iter().copied()).map(str::to_owned),
        }
    }

    /// Splits off the to-many relation that a path begins with.
    pub(super) fn many<'n>(&self, path: &'n str) -> Option<(String, &'n str)> {
        let (first, rest) = path.split_once('.')?;
        let relation = self.relation(first)?;
        let followed = self.stream.relation(&relation)?;
        (!self.stream.is_to_one(followed)).then_some((relation, rest))
    }

    /// A field to show, and the to-many relation that must be expanded for it.
    pub(super) fn shown(&self, name: &str, expanded: &[String]) -> (String, Option<String>) {
        let related = |relation: &str, rest: &str| {
            let behind = self.behind(relation)?;
            Some(format!("{relation}.{}", behind.field(rest)?))
        };
        if let Some((relation, rest)) = name.split_once('.')
            && expanded.iter().any(|it| it == relation)
            && let Some(name) = related(relation, rest)
        {
            return (name, None);
        }
        if let Some(field) = self.field(name) {
            return (field, None);
        }
        if let Some((relation, rest)) = self.many(name)
            && let Some(name) = related(&relation, rest)
        {
            return (name, Some(relation));
        }
        (name.to_owned(), None)
    }
}
