//! `query_records`: a page of records, complete in text and in structure alike.

use std::ops::Range;

use serde_json::{Map, Value as Json, json};
use wayleave_plan::Record;
use wayleave_plan::query::{Page, QueryPlan};
use wayleave_plan::refusal::{Call, Code, Refusal};
use wayleave_plan::request::QueryRequest;
use wayleave_plan::seal::Seal;
use wayleave_plan::value::Value;
use wayleave_plan::view::{FieldView, StreamView};

use crate::call_context::CallContext;
use crate::case_hint::{CaseHint, FilteredCall};
use crate::ids;
use crate::related::{self, Relations};
use crate::reply::Reply;
use crate::table::Table;
use crate::truncate::{self, TruncatedValue};

/// Maximum size of a cursor, in bytes. Longer sort values make cursors no client should carry.
pub(crate) const MAX_CURSOR_BYTES: usize = 2_048;

/// Answers a query.
pub(crate) async fn answer(
    call: &CallContext<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = QueryRequest::parse(arguments)?;
    let mut plan = QueryPlan::new(&call.view, &request, call.seal)?.with_previews();
    if let Some(horizon) = plan.horizon() {
        let horizon = call.value(horizon).await?;
        plan = plan.with_horizon(horizon);
    }
    // Rows beyond four times the text's budget could not be shown, whatever they hold.
    let rows = call.rows_at_least(2, plan.rows(), call.max_bytes * 4);
    let count = async {
        match plan.count() {
            Some(count) => call.count(count).await.map(Some),
            None => Ok(None),
        }
    };
    // Polled last, while the store works.
    let frame = async { Ok(PageFrame::new(&plan, &request, call)) };
    let (read, count, frame) = tokio::try_join!(biased; rows, count, frame)?;
    let read_rows = read.rows.len();
    let page = plan.page_from_rows(read.rows);
    // After a cut, drop the last row to show that more follow, unless a row beyond the page was
    // read.
    let is_shown_by_last = read.cut && read_rows == page.records().len();
    let offered = page.records().len() - usize::from(is_shown_by_last);
    let (records, _) = page.records().split_at(offered);
    let is_first = request.cursor.is_none() && request.changes_since.is_none();
    let hint = if records.is_empty() && is_first {
        let asked = FilteredCall {
            tool: "query_records",
            stream: &request.stream,
            connection_id: request.connection_id.as_deref(),
            filter: request.filter.as_ref(),
            may_match: false,
        };
        CaseHint::read(call, asked, arguments).await
    } else {
        None
    };
    let related = related::follow(call, plan.expansions(), records, call.max_bytes * 8).await?;
    let offered = records.len();
    let writer = Writer {
        plan: &plan,
        page,
        frame,
        count,
        hint,
        cuts: Vec::new(),
    };
    writer
        .written(call, offered, &related)?
        .ok_or_else(|| too_large(&plan, arguments))
}

/// The parts of an answer that do not depend on the rows.
struct PageFrame {
    /// The pattern that makes ids of key values.
    id_pattern: String,
    /// The order of the rows, if the caller requested none.
    order: String,
    /// The empty table that most pages use.
    table: Table,
    meta: Map<String, Json>,
}

impl PageFrame {
    fn new(plan: &QueryPlan, request: &QueryRequest, call: &CallContext<'_>) -> Self {
        let id_pattern = ids::pattern(plan.view());
        let meta = [
            ("stream", plan.stream()),
            ("connection_id", plan.connection_id()),
            ("connector_key", plan.connector_key()),
            ("id", id_pattern.as_str()),
        ];
        let meta = meta.map(|(name, value)| (name.to_owned(), value.into()));
        Self {
            table: Table::new(columns(plan, false), call.max_bytes),
            meta: Map::from_iter(meta),
            order: default_order(plan.view(), request),
            id_pattern,
        }
    }
}

/// Describes the default order of rows.
fn default_order(stream: &StreamView, request: &QueryRequest) -> String {
    if !request.sort.is_empty() || request.changes_since.is_some() {
        return String::new();
    }
    if let Some(time) = stream.event_time().filter(|field| field.can_sort()) {
        return format!(" newest first by {},", time.name());
    }
    let key: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    format!(" by key {},", key.join(" "))
}

fn columns(plan: &QueryPlan, shows_ids: bool) -> Vec<(String, String)> {
    let same = |name: &str| (name.to_owned(), name.to_owned());
    let fields = plan.header().iter().map(|name| same(name));
    let relations = plan.expansions().iter().map(related::heading);
    let ids = shows_ids.then(|| same("@id"));
    let deleted = plan.marks_deleted().then(|| same("@deleted"));
    fields.chain(relations).chain(ids).chain(deleted).collect()
}

struct Writer<'a> {
    plan: &'a QueryPlan,
    page: Page<'a>,
    frame: PageFrame,
    count: Option<(u64, bool)>,
    /// The case hint of an empty page.
    hint: Option<CaseHint>,
    /// The cuts in the first record, if it alone exceeds a page.
    cuts: Vec<TruncatedValue>,
}

impl Writer<'_> {
    /// The reply of the first `offered` records; `None` when not even one fits.
    fn written(
        mut self,
        call: &CallContext<'_>,
        offered: usize,
        related: &Relations,
    ) -> Result<Option<Reply>, Refusal> {
        let mut records = self.page.records().iter().take(offered);
        let shows_ids = records.any(Record::is_key_encoded);
        let mut table = std::mem::take(&mut self.frame.table);
        if shows_ids {
            table = Table::new(columns(self.plan, shows_ids), call.max_bytes);
        }
        table.reserve(offered);
        // Relations were read for the first `parents` records only.
        let readable = offered.min(related.parents);
        self.fill(&mut table, 0..readable, related, shows_ids);
        let mut is_cut = false;
        loop {
            let shown = table.len();
            if shown == 0 && offered > 0 {
                if std::mem::replace(&mut is_cut, true) || readable == 0 {
                    return Ok(None);
                }
                let before = self.head(1, shows_ids).len() + table.text_bytes();
                let Some(row) = self.cut(call, before, related, shows_ids)? else {
                    return Ok(None);
                };
                if table.push(&[], &row) {
                    self.fill(&mut table, 1..readable, related, shows_ids);
                }
                continue;
            }
            let handles = self.handles(shown, call.seal)?;
            let head = self.head(shown, shows_ids);
            let tail = self.tail(&handles, related, shown, &self.cuts);
            if head.len() + table.text_bytes() + tail.len() > call.max_bytes && shown > 0 {
                table.pop();
                continue;
            }
            call.note_records(self.page.records().iter().take(shown));
            call.note_rows(shown);
            call.note_stream(self.plan.connection_id(), self.plan.stream());
            return Ok(Some(self.finish(table, &head, &tail, &handles, related)));
        }
    }

    /// Adds rows while there is room.
    fn fill(&self, table: &mut Table, records: Range<usize>, related: &Relations, shows_ids: bool) {
        let values_alone =
            !shows_ids && !self.plan.marks_deleted() && self.plan.expansions().is_empty();
        let all = self.page.records().iter().enumerate();
        for (index, record) in all.take(records.end).skip(records.start) {
            let more = if values_alone {
                Vec::new()
            } else {
                self.more(index, record, related, shows_ids)
            };
            if !table.push(&record.values, &more) {
                return;
            }
        }
    }

    /// The first row with its longest values cut, so that it fits after the `before` bytes. Key
    /// fields and related records are never cut.
    fn cut(
        &mut self,
        call: &CallContext<'_>,
        before: usize,
        related: &Relations,
        shows_ids: bool,
    ) -> Result<Option<Vec<Json>>, Refusal> {
        let Some(record) = self.page.records().first() else {
            return Ok(None);
        };
        let mut row: Vec<Json> = record.values.iter().map(Value::to_json).collect();
        row.extend(self.more(0, record, related, shows_ids));
        let handles = self.handles(1, call.seal)?;
        let is_key = |name: &String| {
            let mut keys = self.plan.view().key_fields().iter();
            keys.any(|field| field.name() == name)
        };
        let may_cut =
            |column: usize| (self.plan.header().get(column)).is_some_and(|name| !is_key(name));
        let room = |cuts: &[TruncatedValue]| {
            let tail = self.tail(&handles, related, 1, cuts);
            call.max_bytes.saturating_sub(before + tail.len())
        };
        let previews = record.values.iter().map(|value| match value {
            Value::Preview(preview) => usize::try_from(preview.characters).ok(),
            _ => None,
        });
        let previews: Vec<Option<usize>> = previews.collect();
        let Some(cuts) = truncate::cut(&mut row, &previews, may_cut, room) else {
            return Ok(None);
        };
        self.cuts = cuts;
        Ok(Some(row))
    }

    /// The handles to continue from a page of `shown` records.
    fn handles(&self, shown: usize, seal: Seal<'_>) -> Result<Handles, Refusal> {
        let next_cursor = self.page.next_cursor(shown, seal);
        if (next_cursor.as_ref()).is_some_and(|it| it.len() > MAX_CURSOR_BYTES) {
            return Err(Refusal::new(
                Code::ResultTooLarge,
                "a page sorted by values this long cannot be continued; sort by another field",
            )
            .param("sort")
            .retry_with("sort"));
        }
        Ok(Handles {
            next_changes_since: self.page.next_changes_since(shown, seal),
            next_cursor,
            count: self.count,
        })
    }

    /// The text after the rows.
    fn tail(
        &self,
        handles: &Handles,
        related: &Relations,
        shown: usize,
        cuts: &[TruncatedValue],
    ) -> String {
        let mut tail = TruncatedValue::text(cuts, self.plan.header());
        tail.push_str(&handles.text());
        tail.push_str(&related.text(self.plan.expansions(), shown));
        if let Some(hint) = &self.hint {
            tail.push_str(&hint.text());
        }
        tail
    }

    /// The cells after the values of a record.
    fn more(
        &self,
        index: usize,
        record: &Record,
        related: &Relations,
        shows_ids: bool,
    ) -> Vec<Json> {
        let mut more = related.cells(self.plan.expansions(), index);
        if shows_ids {
            more.push(record.id().into());
        }
        if self.plan.marks_deleted() {
            more.push(record.deleted.then_some(true).into());
        }
        more
    }

    fn head(&self, shown: usize, shows_ids: bool) -> String {
        let rows = if shown == 1 { "row" } else { "rows" };
        let id = if shows_ids {
            "@id"
        } else {
            &self.frame.id_pattern
        };
        format!(
            "{shown} {rows} of {},{} connection_id {}, fetch id {id}\n",
            self.plan.stream(),
            self.frame.order,
            self.plan.connection_id(),
        )
    }

    fn finish(
        self,
        table: Table,
        head: &str,
        tail: &str,
        handles: &Handles,
        related: &Relations,
    ) -> Reply {
        let shown = table.len();
        let expansions = self.plan.expansions();
        let expand = (!expansions.is_empty()).then(|| related.structure(expansions, shown));
        let (mut text, data) = table.finish(expand.as_ref().map(|it| ("expand", it)));
        text.insert_str(0, head);
        text.push_str(tail);
        let mut meta = self.frame.meta;
        handles.put_into(&mut meta);
        if let Some(hint) = &self.hint {
            meta.insert("case".to_owned(), hint.structure());
        }
        if !self.cuts.is_empty() {
            let cuts = TruncatedValue::structure(&self.cuts, self.plan.header());
            meta.insert("cut".to_owned(), cuts);
        }
        Reply::row_set(text, &data, &Json::Object(meta))
    }
}

/// The handles a caller needs to continue.
struct Handles {
    next_cursor: Option<String>,
    next_changes_since: Option<String>,
    count: Option<(u64, bool)>,
}

impl Handles {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some((count, exact)) = self.count {
            let kind = if exact { "exact" } else { "estimated" };
            say!(text, "count={count} {kind}\n");
        }
        if let Some(cursor) = &self.next_cursor {
            say!(
                text,
                "next_cursor={cursor}\nmore rows: the same call with cursor\n"
            );
        }
        if let Some(bookmark) = &self.next_changes_since {
            say!(
                text,
                "next_changes_since={bookmark}\nlater changes: the same call with changes_since\n"
            );
        }
        text
    }

    fn put_into(&self, meta: &mut Map<String, Json>) {
        if let Some((count, exact)) = self.count {
            let kind = if exact { "exact" } else { "estimated" };
            meta.insert("count".to_owned(), json!({ "value": count, "kind": kind }));
        }
        for (name, handle) in [
            ("next_cursor", &self.next_cursor),
            ("next_changes_since", &self.next_changes_since),
        ] {
            if let Some(handle) = handle {
                meta.insert(name.to_owned(), handle.as_str().into());
            }
        }
    }
}

/// The refusal of a record that alone exceeds what a result may hold, however its values are cut.
fn too_large(plan: &QueryPlan, arguments: &Map<String, Json>) -> Refusal {
    let message = if plan.expansions().is_empty() {
        "one record alone exceeds a result; name fewer `fields`, and `fetch` the long ones"
    } else {
        "one record with its relations exceeds a result; leave `expand` out or name fewer `fields`"
    };
    let small = small_fields(plan.view());
    let mut next = vec![
        ("stream", plan.stream().into()),
        ("connection_id", plan.connection_id().into()),
        ("fields", json!(small)),
    ];
    // Without these it would be a different query.
    for name in ["filter", "sort"] {
        next.extend(arguments.get(name).map(|given| (name, given.clone())));
    }
    Refusal::new(Code::ResultTooLarge, message)
        .param("fields")
        .retry_with("fields")
        .next(Call::new("query_records", next))
}

/// The key, and the first few fields whose values are short by nature.
pub(crate) fn small_fields(stream: &StreamView) -> Vec<&str> {
    use wayleave_model::mapping::Datatype::{Iri, Json, String};
    const MAX_SMALL_FIELDS: usize = 6;
    let mut small: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    for field in stream.fields() {
        let short = !field.is_many() && !matches!(field.datatype(), String | Iri | Json);
        if short && small.len() < MAX_SMALL_FIELDS && !small.contains(&field.name()) {
            small.push(field.name());
        }
    }
    small
}
