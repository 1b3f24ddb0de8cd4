//! Vocabulary of other query languages, with the equivalents here. It only serves suggestions; none
//! of its words is accepted.

/// Arguments by their names in other languages.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("filter", &["where", "filters", "conditions", "criteria"]),
    ("sort", &["orderby", "order", "sortby", "ordering"]),
    ("fields", &["select", "columns", "properties", "projection"]),
    ("expand", &["include", "join", "joins", "relations", "with"]),
    ("limit", &["top", "size", "pagesize", "maxresults", "take"]),
    ("cursor", &["offset", "page", "pagetoken", "skip", "after"]),
    ("count", &["total", "includecount", "withcount"]),
    ("changes_since", &["since", "modifiedsince", "updatedsince"]),
    (
        "connection_id",
        &["connection", "connector", "source", "database"],
    ),
    ("streams", &["stream", "tables", "types", "in"]),
    ("stream", &["table", "name", "type", "entity", "collection"]),
    (
        "q",
        &["query", "text", "search", "keywords", "term", "terms"],
    ),
    ("id", &["recordid", "uri", "url", "key", "record"]),
    (
        "metrics",
        &["metric", "measures", "aggregations", "aggregates"],
    ),
    ("group_by", &["group", "groups", "dimensions", "by"]),
    ("group_by_time", &["timegroup", "interval", "bucket"]),
    ("totals", &["total", "withtotals", "rollup", "grandtotal"]),
    ("granularity", &["interval", "period", "bucket", "unit"]),
    ("time_zone", &["tz", "zone"]),
    ("entity", &["name", "id", "title", "record", "subject", "q"]),
    ("dataset", &["connectorkey", "connector", "source"]),
    ("name", &["dataset", "datasetname", "id", "connectorkey"]),
    ("op", &["operation", "function", "func", "type", "agg"]),
    ("field", &["column", "on", "property", "name"]),
];

/// Operators and operations by their names in other languages.
const OPERATORS: &[(&str, &[&str])] = &[
    ("eq", &["=", "==", "is", "equals"]),
    ("ne", &["!=", "<>", "not", "neq", "isnot"]),
    ("gt", &[">", "after", "greaterthan"]),
    ("gte", &[">=", "ge", "min", "from", "since"]),
    ("lt", &["<", "before", "lessthan"]),
    ("lte", &["<=", "le", "max", "to", "until"]),
    ("in", &["anyof", "oneof", "any"]),
    ("not_in", &["nin", "noneof"]),
    (
        "contains",
        &["like", "regex", "match", "search", "~", "includes"],
    ),
    ("icontains", &["ilike", "~*", "icontain", "istartswith"]),
    ("ieq", &["iequals", "iexact", "equalsignorecase"]),
    ("starts_with", &["prefix", "beginswith", "startswith"]),
    ("is_null", &["null", "exists", "isempty", "missing"]),
    ("avg", &["average", "mean"]),
    ("sum", &["total"]),
    (
        "count_distinct",
        &["distinct", "unique", "nunique", "cardinality"],
    ),
    ("exact", &["true", "yes", "total"]),
    ("full", &["verbose", "all", "long", "detailed"]),
];

/// The kind of word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The name of an argument.
    Argument,
    /// An operator, or a keyword that an argument takes.
    Operator,
}

/// The equivalent of a foreign word, if it is among the allowed ones.
pub(super) fn meant(kind: Kind, given: &str, allowed: &[String]) -> Option<String> {
    let plain: String = given
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '$'))
        .flat_map(char::to_lowercase)
        .take(32)
        .collect();
    let words = match kind {
        Kind::Argument => ARGUMENTS,
        Kind::Operator => OPERATORS,
    };
    words
        .iter()
        .filter(|(_, others)| others.contains(&plain.as_str()))
        .map(|(ours, _)| *ours)
        .find(|ours| allowed.iter().any(|word| word == ours))
        .map(str::to_owned)
}
