//! `aggregate`: groups and their measures.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::AggregateRequest;
use wayleave_plan::value::Value;

use crate::call_context::CallContext;
use crate::case_hint::{CaseHint, FilteredCall};
use crate::query::MAX_CURSOR_BYTES;
use crate::reply::Reply;
use crate::table::Table;
use crate::{cell, period};

/// Maximum size of the text of a single value, in bytes, unless the value itself is longer.
const MAX_VALUE_BYTES: usize = 80;

/// Maximum size of the groups read to be ranked by their tokens, in bytes.
const MAX_RANKED_BYTES: usize = 8 * 1024 * 1024;

/// Answers an aggregate.
pub(crate) async fn answer(
    call: &CallContext<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = AggregateRequest::parse(arguments)?;
    let plan = AggregatePlan::new(&call.view, &request, call.seal)?;
    let room = if plan.is_ranked_by_tokens() {
        MAX_RANKED_BYTES
    } else {
        call.max_bytes * 4
    };
    let groups = call.rows(plan.groups(), room);
    let totals = async {
        match plan.totals() {
            Some(totals) => call.rows(totals, call.max_bytes * 4).await.map(Some),
            None => Ok(None),
        }
    };
    let (read, totals) = tokio::try_join!(groups, totals)?;
    let (ranked, cut) = plan.ranked(read.rows, read.cut)?;
    let (groups, more) = plan.answer(&ranked);
    call.note_stream(plan.connection_id(), plan.stream());
    call.note_rows(groups.len());
    let found_none =
        request.having.is_none() && request.cursor.is_none() && matches_no_record(&plan, groups);
    let hint = if found_none {
        let asked = FilteredCall {
            tool: "aggregate",
            stream: &request.stream,
            connection_id: request.connection_id.as_deref(),
            filter: request.filter.as_ref(),
            may_match: plan.key_count() == 0,
        };
        CaseHint::read(call, asked, arguments).await
    } else {
        None
    };
    let writer = Writer {
        plan: &plan,
        hint,
        groups,
        more: more || cut,
        is_tied: plan.cuts_tie(&ranked),
        totals: totals.and_then(|totals| totals.rows.into_iter().next()),
    };
    if let ([], [value]) = plan.header().split_at(plan.key_count())
        && let Some(reply) = writer.one_value(value, call.max_bytes)
    {
        return Ok(reply);
    }
    writer.table(call)
}

/// Whether no record may have matched: there is no group, or the only group has empty measures.
fn matches_no_record(plan: &AggregatePlan, groups: &[Vec<Value>]) -> bool {
    let nothing = |value: &Value| matches!(value, Value::Null | Value::Integer(0));
    match groups {
        [] => true,
        [one] => plan.key_count() == 0 && one.iter().all(nothing),
        _ => false,
    }
}

struct Writer<'a> {
    plan: &'a AggregatePlan,
    /// The case hint, where no record was found.
    hint: Option<CaseHint>,
    groups: &'a [Vec<Value>],
    /// Whether more groups follow.
    more: bool,
    /// Whether the limit separates groups of equal rank.
    is_tied: bool,
    /// The measures of all records together.
    totals: Option<Vec<Value>>,
}

/// The part of the reply after the groups.
struct ReplyTail {
    text: String,
    next_cursor: Option<String>,
    is_tied: bool,
}

impl Writer<'_> {
    /// A single measure of all records as one line, with the stream and connection as far as they
    /// fit.
    fn one_value(&self, name: &str, max_bytes: usize) -> Option<Reply> {
        let [group] = self.groups else {
            return None;
        };
        let [value] = group.as_slice() else {
            return None;
        };
        let (mut text, mut json) = (format!("{name}="), String::new());
        if *value == Value::Null {
            text.push_str("null");
            json.push_str("null");
        } else {
            cell::push_value(&mut text, &mut json, value);
        }
        if text.len() >= max_bytes {
            return None;
        }
        for (word, from) in [
            ("of", self.plan.stream()),
            ("connection_id", self.plan.connection_id()),
        ] {
            if text.len() + word.len() + from.len() + 3 <= MAX_VALUE_BYTES {
                say!(text, " {word} {from}");
            }
        }
        text.push('\n');
        if let Some(hint) = &self.hint {
            text.push_str(&hint.text());
        }
        let data = json!({ "fields": [name] }).to_string();
        let data = data.trim_end_matches('}');
        let data = format!("{data},\"rows\":[[{json}]]}}");
        let meta = Json::Object(self.meta());
        Some(Reply::row_set(text, &data, &meta))
    }

    fn table(&self, call: &CallContext<'_>) -> Result<Reply, Refusal> {
        let header = self.plan.header().iter();
        let columns = header.map(|name| (name.clone(), name.clone()));
        let mut table = Table::new(columns, call.max_bytes);
        for group in self.groups {
            if !table.push(&self.labelled(group), &[]) {
                break;
            }
        }
        loop {
            let shown = table.len();
            if shown == 0 && (self.more || !self.groups.is_empty()) {
                return Err(too_large());
            }
            let head = self.head(shown);
            let tail = self.tail(call, shown);
            if head.len() + table.text_bytes() + tail.text.len() > call.max_bytes && shown > 0 {
                table.pop();
                continue;
            }
            let (rows, data) = table.finish(None);
            let mut meta = self.meta();
            meta.insert("more".to_owned(), self.has_more(shown).into());
            if let Some(cursor) = tail.next_cursor {
                meta.insert("next_cursor".to_owned(), cursor.into());
            }
            if tail.is_tied {
                meta.insert("tie".to_owned(), true.into());
            }
            let text = format!("{head}{rows}{}", tail.text);
            return Ok(Reply::row_set(text, &data, &Json::Object(meta)));
        }
    }

    /// A group with its period as a label.
    fn labelled(&self, group: &[Value]) -> Vec<Value> {
        let mut values = group.to_vec();
        // The period is the last of the keys.
        let place = self.plan.key_count().checked_sub(1);
        if let (Some(granularity), Some(place)) = (self.plan.granularity(), place)
            && let Some(value) = values.get_mut(place)
        {
            *value = period::label(granularity, value);
        }
        values
    }

    /// Whether groups follow the first `shown`.
    fn has_more(&self, shown: usize) -> bool {
        self.more || shown < self.groups.len()
    }

    fn head(&self, shown: usize) -> String {
        let groups = if shown == 1 { "group" } else { "groups" };
        format!(
            "{shown} {groups} of {}, connection_id {}\n",
            self.plan.stream(),
            self.plan.connection_id()
        )
    }

    fn tail(&self, call: &CallContext<'_>, shown: usize) -> ReplyTail {
        let mut text = String::new();
        if let Some(totals) = &self.totals {
            text.push_str("total ");
            let names = self.plan.header().iter().skip(self.plan.key_count());
            for (place, (name, value)) in names.zip(totals).enumerate() {
                if place > 0 {
                    text.push('|');
                }
                say!(text, "{name}=");
                cell::push_value(&mut text, &mut String::new(), value);
            }
            text.push('\n');
        }
        if let Some(hint) = &self.hint {
            text.push_str(&hint.text());
        }
        let is_tied = self.is_tied && shown == self.groups.len();
        if is_tied {
            text.push_str("tie: groups not shown rank equal with the last one shown\n");
        }
        let last = shown.checked_sub(1).and_then(|last| self.groups.get(last));
        let next_cursor = last
            .filter(|_| self.has_more(shown))
            .and_then(|last| self.plan.cursor(last, call.seal))
            .filter(|cursor| cursor.len() <= MAX_CURSOR_BYTES);
        match &next_cursor {
            Some(cursor) => say!(
                text,
                "next_cursor={cursor}\nmore groups: the same call with cursor\n"
            ),
            None if self.has_more(shown) => {
                text.push_str("more groups than shown: filter, or group by shorter values\n");
            }
            None => {}
        }
        ReplyTail {
            text,
            next_cursor,
            is_tied,
        }
    }

    fn meta(&self) -> Map<String, Json> {
        let mut meta = Map::new();
        let mut put = |name: &str, value: Json| meta.insert(name.to_owned(), value);
        put("stream", self.plan.stream().into());
        put("connection_id", self.plan.connection_id().into());
        put("connector_key", self.plan.connector_key().into());
        if let Some(totals) = &self.totals {
            let names = self
                .plan
                .header()
                .iter()
                .skip(self.plan.key_count())
                .cloned();
            let totals = names.zip(totals.iter().map(Value::to_json));
            put("totals", Json::Object(totals.collect()));
        }
        if let Some(hint) = &self.hint {
            put("case", hint.structure());
        }
        meta
    }
}

fn too_large() -> Refusal {
    Refusal::new(
        Code::ResultTooLarge,
        "one group alone exceeds a result; group by another field",
    )
    .param("group_by")
    .retry_with("group_by")
}
