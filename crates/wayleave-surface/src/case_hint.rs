//! The hint of an empty answer whose text filter would match records if case were ignored.
//!
//! Only an empty answer pays for it, with one more count.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Call;
use wayleave_plan::request::{CountKind, QueryRequest};

use crate::call_context::CallContext;
use crate::escape;
use crate::repair::is_sensitive;

/// Maximum size of the suggested call, in bytes of JSON.
const MAX_CALL_BYTES: usize = 2_048;

/// The number of records that match if case is ignored, and the call that finds them.
#[derive(Debug)]
pub(crate) struct CaseHint {
    count: u64,
    next: Call,
}

impl CaseHint {
    /// Counts matches in the store, if any condition of the filter is case-sensitive. A failure of
    /// this second read is ignored: the page itself is complete.
    pub(crate) async fn read(
        call: &CallContext<'_>,
        asked: FilteredCall<'_>,
        arguments: &Map<String, Json>,
    ) -> Option<Self> {
        let folding = Folding { call, asked };
        let filter = folding.folded(asked.filter?, &Context::Stream)?;
        let mut arguments = arguments.clone();
        arguments.insert("filter".to_owned(), filter.clone().into());
        let offered = json!(arguments);
        if offered.to_string().len() > MAX_CALL_BYTES || is_sensitive(&offered) {
            return None;
        }
        let count = asked.count(call, &filter).await.filter(|it| *it > 0)?;
        if asked.may_match && asked.count(call, asked.filter?).await? > 0 {
            return None;
        }
        Some(Self {
            count,
            next: Call {
                tool: asked.tool,
                arguments,
            },
        })
    }

    /// The hint as a line of text.
    pub(crate) fn text(&self) -> String {
        let verb = if self.count == 1 { "does" } else { "do" };
        format!(
            "case: no record matches as written, {} {verb} without regard to case: {} {}\n",
            self.count,
            self.next.tool,
            escape::json(&json!(self.next.arguments))
        )
    }

    /// The hint as structure.
    pub(crate) fn structure(&self) -> Json {
        json!({ "count": self.count, "next": self.next })
    }
}

/// A call that found nothing.
#[derive(Clone, Copy)]
pub(crate) struct FilteredCall<'a> {
    pub(crate) tool: &'static str,
    pub(crate) stream: &'a str,
    pub(crate) connection_id: Option<&'a str>,
    pub(crate) filter: Option<&'a Map<String, Json>>,
    /// Whether records may have matched after all: their measures can be empty too.
    pub(crate) may_match: bool,
}

impl FilteredCall<'_> {
    /// Number of records that match a filter.
    async fn count(&self, call: &CallContext<'_>, filter: &Map<String, Json>) -> Option<u64> {
        let counted = QueryRequest {
            filter: Some(filter.clone()),
            count: CountKind::Exact,
            ..self.bare()
        };
        let plan = QueryPlan::new(&call.view, &counted, call.seal).ok()?;
        let (count, _) = call.count(plan.count()?).await.ok()?;
        Some(count)
    }

    /// A query of the same stream without a filter.
    fn bare(&self) -> QueryRequest {
        QueryRequest {
            stream: self.stream.to_owned(),
            connection_id: self.connection_id.map(str::to_owned),
            filter: None,
            sort: Vec::new(),
            fields: None,
            expand: Vec::new(),
            limit: 1,
            cursor: None,
            count: CountKind::None,
            changes_since: None,
        }
    }
}

/// The records that the names in a filter refer to.
enum Context<'a> {
    Stream,
    /// The records at the end of a relation.
    Related(&'a str, &'a Context<'a>),
}

impl Context<'_> {
    /// Rewrites a filter of these records as a filter of the stream.
    fn placed(&self, filter: Map<String, Json>) -> Map<String, Json> {
        match self {
            Self::Stream => filter,
            Self::Related(relation, from) => {
                let one = Map::from_iter([((*relation).to_owned(), json!({ "some": filter }))]);
                from.placed(one)
            }
        }
    }
}

struct Folding<'a> {
    call: &'a CallContext<'a>,
    asked: FilteredCall<'a>,
}

impl Folding<'_> {
    /// The case-insensitive form of a filter; `None` if none of its conditions is case-sensitive.
    fn folded(
        &self,
        filter: &Map<String, Json>,
        context: &Context<'_>,
    ) -> Option<Map<String, Json>> {
        let mut changed = false;
        let mut folded = Map::new();
        for (name, wanted) in filter {
            let new = match wanted {
                Json::Array(filters) if name == "any" => {
                    let each = filters.iter().map(|it| self.alternative(it, context));
                    let each: Vec<(Json, bool)> = each.collect();
                    let any = each.iter().any(|(_, changed)| *changed);
                    any.then(|| each.into_iter().map(|(it, _)| it).collect())
                }
                Json::Object(wanted) if has_quantifier(wanted) => {
                    let inner = Context::Related(name, context);
                    self.related(wanted, &inner)
                }
                _ if !is_case_sensitive(wanted) || !self.is_text(name, context) => None,
                wanted => match several(wanted) {
                    // A list becomes several conditions under `any`, and a filter has only one
                    // `any`.
                    Some(values) if values.len() > 1 => {
                        let free = !filter.contains_key("any") && !folded.contains_key("any");
                        if let (true, Some(any)) = (free, any_of(name, values)) {
                            folded.insert("any".to_owned(), any);
                            changed = true;
                            continue;
                        }
                        None
                    }
                    Some(values) => values.first().map(|only| json!({ "ieq": only })),
                    None => operators(wanted),
                },
            };
            changed |= new.is_some();
            folded.insert(name.clone(), new.unwrap_or_else(|| wanted.clone()));
        }
        changed.then_some(folded)
    }

    fn alternative(&self, filter: &Json, context: &Context<'_>) -> (Json, bool) {
        let folded = filter.as_object().and_then(|it| self.folded(it, context));
        match folded {
            Some(folded) => (Json::Object(folded), true),
            None => (filter.clone(), false),
        }
    }

    /// Folds `some` only: folding `none` would match fewer records.
    fn related(&self, wanted: &Map<String, Json>, context: &Context<'_>) -> Option<Json> {
        let some = wanted.get("some")?.as_object()?;
        let mut new = wanted.clone();
        new.insert("some".to_owned(), self.folded(some, context)?.into());
        Some(Json::Object(new))
    }

    /// Whether a name is a text field in this context.
    fn is_text(&self, name: &str, context: &Context<'_>) -> bool {
        let probe = Map::from_iter([(name.to_owned(), json!({ "ieq": "a" }))]);
        let request = QueryRequest {
            filter: Some(context.placed(probe)),
            ..self.asked.bare()
        };
        QueryPlan::new(&self.call.view, &request, self.call.seal).is_ok()
    }
}

fn has_quantifier(wanted: &Map<String, Json>) -> bool {
    wanted.contains_key("some") || wanted.contains_key("none")
}

/// Whether a condition on a text field is case-sensitive.
fn is_case_sensitive(wanted: &Json) -> bool {
    match wanted {
        Json::String(_) => true,
        Json::Array(values) => values.iter().all(Json::is_string),
        Json::Object(wanted) => {
            let compared = |op: &str| wanted.get(op).is_some_and(Json::is_string);
            let listed = wanted.get("in").and_then(Json::as_array);
            ["eq", "contains", "starts_with"].into_iter().any(compared)
                || listed.is_some_and(|it| it.iter().all(Json::is_string))
        }
        _ => false,
    }
}

/// The values of a condition that consists of one list.
fn several(wanted: &Json) -> Option<&Vec<Json>> {
    match wanted {
        Json::Array(values) => Some(values),
        Json::Object(wanted) if wanted.len() == 1 => wanted.get("in")?.as_array(),
        _ => None,
    }
}

fn any_of(name: &str, values: &[Json]) -> Option<Json> {
    let one = |value: &Json| Some(json!({ name: { "ieq": value.as_str()? } }));
    values
        .iter()
        .map(one)
        .collect::<Option<Vec<_>>>()
        .map(Json::Array)
}

/// The case-insensitive form of a value or an object of operators.
fn operators(wanted: &Json) -> Option<Json> {
    let wanted = match wanted {
        Json::String(text) => return Some(json!({ "ieq": text })),
        Json::Object(wanted) => wanted,
        _ => return None,
    };
    let mut new = Map::new();
    for (op, value) in wanted {
        let folded = match op.as_str() {
            "eq" => "ieq",
            "contains" | "starts_with" => "icontains",
            other => other,
        };
        if new.insert(folded.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    (new != *wanted).then_some(Json::Object(new))
}
