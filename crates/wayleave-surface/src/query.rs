//! `query_records`: a page of records, complete in text and in structure alike.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::query::{Page, QueryPlan};
use wayleave_plan::refusal::{Call, Code, Refusal};
use wayleave_plan::request::QueryRequest;
use wayleave_plan::seal::Seal;
use wayleave_plan::value::Value;
use wayleave_plan::view::{StreamView, View};

use crate::ids::Ids;
use crate::reading::Reading;
use crate::related::{self, Relations};
use crate::reply::Reply;
use crate::table::Table;

/// Cursors of rows whose sorted values are longer than this are none a client should carry.
const MOST_CURSOR: usize = 2_048;

/// What a query needs from outside.
pub(crate) struct Asked<'a> {
    pub(crate) view: &'a View,
    pub(crate) seal: Seal<'a>,
    pub(crate) reading: &'a Reading<'a>,
    /// The most bytes of the text.
    pub(crate) most: usize,
}

/// Answers a query.
pub(crate) async fn answer(
    asked: &Asked<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = QueryRequest::read(arguments)?;
    let mut plan = QueryPlan::new(asked.view, &request, asked.seal)?;
    if let Some(horizon) = plan.horizon() {
        let read = asked.reading.rows(horizon, usize::MAX).await?;
        let value = read.rows.into_iter().flatten().next();
        plan = plan.within(value.unwrap_or(Value::Null));
    }
    // Rows beyond four times the text's budget could not be shown, whatever they hold.
    let (read, count) = tokio::try_join!(asked.reading.rows(plan.rows(), asked.most * 4), async {
        match plan.count() {
            Some(count) => asked.reading.count(count).await.map(Some),
            None => Ok(None),
        }
    })?;
    let page = plan.shown(read.rows);
    // What a cut left behind follows the last row: that row shows that the page goes on.
    let offered = page.records().len() - usize::from(read.cut);
    let records = page.records().get(..offered).unwrap_or_default();
    let related =
        related::follow(asked.reading, plan.expansions(), records, asked.most * 8).await?;
    let stream = asked
        .view
        .connection(plan.connection_id())
        .and_then(|connection| connection.stream(plan.stream()));
    let ids = Ids::of(plan.connection_id(), plan.stream(), stream);
    let offered = records.len();
    let mut writer = Writer {
        plan: &plan,
        page,
        ids,
        count,
    };
    let too_large = || too_large(&plan, stream, !request.expand.is_empty());
    if offered == 0 && read.cut {
        return Err(too_large());
    }
    writer
        .written(asked, offered, &related)?
        .ok_or_else(too_large)
}

struct Writer<'a> {
    plan: &'a QueryPlan,
    page: Page<'a>,
    ids: Ids,
    count: Option<(u64, bool)>,
}

impl Writer<'_> {
    /// The reply of the first `offered` records; `None` when not even one fits.
    fn written(
        &mut self,
        asked: &Asked<'_>,
        offered: usize,
        related: &Relations,
    ) -> Result<Option<Reply>, Refusal> {
        let mut records = self.page.records().iter().take(offered);
        let shows_ids = records.any(|record| self.ids.is_encoded(record));
        let mut table = Table::new(self.columns(shows_ids), asked.most);
        // Beyond the parents nothing was read about relations.
        for index in 0..offered.min(related.parents) {
            if !table.push(self.row(index, related, shows_ids)) {
                break;
            }
        }
        loop {
            let shown = table.len();
            if shown == 0 && offered > 0 {
                return Ok(None);
            }
            let next_cursor = self.page.next_cursor(shown, asked.seal);
            if next_cursor
                .as_ref()
                .is_some_and(|it| it.len() > MOST_CURSOR)
            {
                return Err(Refusal::new(
                    Code::ResultTooLarge,
                    "a page sorted by values this long cannot be continued; sort by another field",
                )
                .param("sort")
                .retry_with("sort"));
            }
            let handles = Handles {
                next_changes_since: self.page.next_changes_since(shown, asked.seal),
                next_cursor,
                count: self.count,
            };
            let head = self.head(shown, shows_ids);
            let tail = handles.text() + &related.text(self.plan.expansions(), shown);
            if head.len() + table.text_bytes() + tail.len() > asked.most && shown > 0 {
                table.pop();
                continue;
            }
            return Ok(Some(self.finish(table, &head, &tail, &handles, related)));
        }
    }

    fn columns(&self, shows_ids: bool) -> Vec<(String, String)> {
        let same = |name: &str| (name.to_owned(), name.to_owned());
        let fields = self.plan.header().iter().map(|name| same(name));
        let relations = self.plan.expansions().iter().map(related::heading);
        let ids = shows_ids.then(|| same("@id"));
        let deleted = self.plan.marks_deleted().then(|| same("@deleted"));
        fields.chain(relations).chain(ids).chain(deleted).collect()
    }

    /// The cells of a record, whose values are taken: a row is written once.
    fn row(&mut self, index: usize, related: &Relations, shows_ids: bool) -> Vec<Json> {
        let values = self.page.take_values(index);
        let mut row = Vec::with_capacity(values.len() + self.plan.expansions().len() + 2);
        row.extend(values.into_iter().map(Value::into_json));
        row.extend(related.cells(self.plan.expansions(), index));
        let record = self.page.records().get(index);
        if shows_ids {
            row.push(record.map(|record| record.id.as_str()).into());
        }
        if self.plan.marks_deleted() {
            let deleted = record.is_some_and(|record| record.deleted);
            row.push(deleted.then_some(true).into());
        }
        row
    }

    fn head(&self, shown: usize, shows_ids: bool) -> String {
        let rows = if shown == 1 { "row" } else { "rows" };
        let id = if shows_ids { "@id" } else { self.ids.pattern() };
        format!(
            "{shown} {rows} of {}, connection_id {}, fetch id {id}\n",
            self.plan.stream(),
            self.plan.connection_id(),
        )
    }

    fn finish(
        &self,
        table: Table,
        head: &str,
        tail: &str,
        handles: &Handles,
        related: &Relations,
    ) -> Reply {
        let shown = table.len();
        let (mut text, mut data) = table.finish();
        text.insert_str(0, head);
        text.push_str(tail);
        if !self.plan.expansions().is_empty()
            && let Json::Object(members) = &mut data
        {
            let expand = related.structure(self.plan.expansions(), shown);
            members.insert("expand".to_owned(), expand);
        }
        let mut meta = Map::new();
        for (name, value) in [
            ("stream", self.plan.stream()),
            ("connection_id", self.plan.connection_id()),
            ("connector_key", self.plan.connector_key()),
            ("id", self.ids.pattern()),
        ] {
            meta.insert(name.to_owned(), value.into());
        }
        handles.put_into(&mut meta);
        Reply::row_set(text, data, Json::Object(meta))
    }
}

/// What a caller needs to go on.
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

/// The refusal of a record that alone exceeds what a result may hold.
fn too_large(plan: &QueryPlan, stream: Option<&StreamView>, expands: bool) -> Refusal {
    let message = if expands {
        "one record with its relations exceeds a result; leave `expand` out or name fewer `fields`"
    } else {
        "one record alone exceeds a result; name fewer `fields`, and `fetch` the long ones"
    };
    let small: Vec<&str> = stream.map(small_fields).unwrap_or_default();
    Refusal::new(Code::ResultTooLarge, message)
        .param("fields")
        .retry_with("fields")
        .next(Call::new(
            "query_records",
            [
                ("stream", plan.stream().into()),
                ("connection_id", plan.connection_id().into()),
                ("fields", json!(small)),
            ],
        ))
}

/// The key, and the first few fields whose values are short by nature.
pub(crate) fn small_fields(stream: &StreamView) -> Vec<&str> {
    use wayleave_model::mapping::Datatype::{Iri, Json, String};
    const MOST: usize = 6;
    let mut small: Vec<&str> = stream.key_fields().map(|it| it.name.as_str()).collect();
    for field in stream.fields() {
        let short = !field.many.value && !matches!(field.datatype.value, String | Iri | Json);
        if short && small.len() < MOST && !small.contains(&field.name.as_str()) {
            small.push(&field.name);
        }
    }
    small
}
