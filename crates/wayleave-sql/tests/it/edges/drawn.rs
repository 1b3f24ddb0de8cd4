//! A table of given values, and generated requests over it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::filter::operators;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::value::Value;
use wayleave_store::Store;
use wayleave_store::conformance::{SeededRng, ServedMapping};

use crate::stores::{LoadedDatabase, all, arguments, patient, quoted};

/// A column: its field, datatype, name and type in the store, its values as SQL literals and as
/// answers, and further operands for filters.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) field: &'static str,
    pub(crate) datatype: Datatype,
    pub(crate) column: &'static str,
    pub(crate) declared: &'static str,
    pub(crate) held: Vec<(String, Value)>,
    pub(crate) asked: Vec<Json>,
    /// Whether the sum of its values fits the datatype.
    pub(crate) summed: bool,
}

impl Edge {
    /// A column with the name of its field.
    pub(crate) fn new(
        field: &'static str,
        datatype: Datatype,
        declared: &'static str,
        held: Vec<(String, Value)>,
    ) -> Self {
        Self {
            field,
            datatype,
            column: field,
            declared,
            held,
            asked: Vec::new(),
            summed: true,
        }
    }

    /// Marks its values as too large to sum.
    pub(crate) fn unsummed(mut self) -> Self {
        self.summed = false;
        self
    }

    /// Gives the column another name.
    pub(crate) fn named(mut self, column: &'static str) -> Self {
        self.column = column;
        self
    }

    /// Adds operands that equal no value of the column.
    pub(crate) fn asked(mut self, asked: impl IntoIterator<Item = Json>) -> Self {
        self.asked.extend(asked);
        self
    }
}

/// A store with a table of such columns.
pub(crate) struct DrawnTable {
    kind: SourceKind,
    store: std::sync::Arc<dyn Store>,
    served: ServedMapping,
    tables: TableMap,
    edges: Vec<Edge>,
    rng: SeededRng,
    loaded: LoadedDatabase,
}

const ROWS: usize = 60;
const TABLE: &str = "things";

impl DrawnTable {
    /// Creates the table and fills it with values drawn from each column's list, and with NULLs.
    pub(crate) async fn new(kind: SourceKind, before: &str, edges: Vec<Edge>) -> Self {
        let (sql, rows, rng) = filled(kind, before, &edges);
        Self::over(LoadedDatabase::new(kind, &sql).await, edges, rows, rng)
    }

    /// Like [`new`](Self::new), in a PostgreSQL database with that encoding.
    pub(crate) async fn encoded(encoding: &str, edges: Vec<Edge>) -> Self {
        let (sql, rows, rng) = filled(SourceKind::Postgres, "", &edges);
        Self::over(
            LoadedDatabase::encoded(encoding, &sql).await,
            edges,
            rows,
            rng,
        )
    }

    fn over(loaded: LoadedDatabase, edges: Vec<Edge>, rows: Vec<RowMap>, rng: SeededRng) -> Self {
        let kind = loaded.kind;
        Self {
            kind,
            store: loaded.store(),
            served: ServedMapping::new(&mapping(kind, &edges)).unwrap(),
            tables: BTreeMap::from([(TABLE.to_owned(), rows)]),
            edges,
            rng,
            loaded,
        }
    }
    /// Adds an index on every column.
    pub(crate) async fn indexed(self) -> Self {
        let mut sql = String::new();
        for (number, edge) in self.edges.iter().enumerate() {
            let column = quoted(self.kind, edge.column);
            write!(sql, "CREATE INDEX by_{number} ON {TABLE} ({column});").unwrap();
        }
        self.loaded.execute(&sql).await;
        self
    }

    /// Walks the table sorted by every column.
    pub(crate) async fn sorts(&self) {
        for Edge { field, .. } in &self.edges {
            for sort in [json!([field]), json!([format!("-{field}")])] {
                self.walk(json!({"sort": sort, "limit": 7})).await;
            }
        }
    }

    /// Checks each column alone, then generated requests over all columns.
    pub(crate) async fn check(mut self, requests: usize) {
        self.sorts().await;
        for edge in self.edges.clone() {
            let field = edge.field;
            for operand in operands(&edge) {
                for op in ops(edge.datatype) {
                    if operand == json!("")
                        && matches!(*op, "contains" | "starts_with" | "icontains")
                    {
                        continue;
                    }
                    let filter = match *op {
                        "in" | "not_in" => json!({field: {*op: [operand]}}),
                        _ => json!({field: {*op: operand}}),
                    };
                    self.walk(json!({"filter": filter, "limit": 100})).await;
                }
            }
            for op in edge.datatype.aggregates() {
                let op = op.as_str();
                if op == "group_by" {
                    let asked = json!({"metrics": [{"op": "count"}], "group_by": [field]});
                    self.groups(asked).await;
                } else if op != "group_by_time" && (edge.summed || !matches!(op, "sum" | "avg")) {
                    let asked = json!({"metrics": [{"op": op, "field": field}]});
                    self.groups(asked).await;
                }
            }
        }
        for _ in 0..requests {
            let asked = self.draw();
            self.walk(asked).await;
        }
        self.store.close().await;
    }

    fn draw(&mut self) -> Json {
        let edges = self.rng.some(&self.edges, 2);
        let mut filter = Map::new();
        for edge in &edges {
            if self.rng.percent(50) {
                let op = self.rng.pick(ops(edge.datatype)).copied().unwrap();
                let operands = operands(edge);
                let operand = match op {
                    "in" | "not_in" => json!(self.rng.some(&operands, 3)),
                    _ => self.rng.pick(&operands).cloned().unwrap_or_default(),
                };
                // The filter language refuses to search for an empty text.
                if operand != json!("") {
                    filter.insert(edge.field.to_owned(), json!({op: operand}));
                }
            }
        }
        let sort: Vec<String> = edges
            .iter()
            .map(|edge| {
                let sign = if self.rng.percent(50) { "-" } else { "" };
                format!("{sign}{}", edge.field)
            })
            .collect();
        let limit = 1 + self.rng.below(20);
        let mut asked = json!({"sort": sort, "limit": limit});
        if !filter.is_empty() {
            asked["filter"] = Json::Object(filter);
        }
        asked
    }

    /// Walks all pages of a query.
    async fn walk(&self, asked: Json) {
        let mut asked = arguments(asked);
        asked.insert("stream".to_owned(), json!(TABLE));
        // Each page shows a record, so there are at most as many pages as records.
        for _ in 0..=ROWS {
            let Some(plan) = self.served.query(&asked) else {
                panic!("{}: refused {asked:?}", self.kind);
            };
            let rows = self.same(plan.rows(), &asked).await;
            let page = plan.page(&rows);
            match page.next_cursor(page.records().len(), self.served.seal()) {
                Some(cursor) => asked.insert("cursor".to_owned(), Json::String(cursor)),
                None => return,
            };
        }
        panic!("{}: a walk without end: {asked:?}", self.kind);
    }

    async fn groups(&self, asked: Json) {
        let mut asked = arguments(asked);
        asked.insert("stream".to_owned(), json!(TABLE));
        let plan = self.served.aggregate(&asked);
        let plan = plan.unwrap_or_else(|| panic!("{}: refused {asked:?}", self.kind));
        self.same(plan.groups(), &asked).await;
    }

    async fn same(&self, plan: &AuthorizedPlan, asked: &Map<String, Json>) -> Vec<Vec<Value>> {
        let expected = interpret(plan, &self.tables);
        let answered = all(self.store.as_ref(), plan, &patient()).await;
        let answered =
            answered.unwrap_or_else(|error| panic!("{}: {asked:?}: {error:?}", self.kind));
        let text = |rows: &[Vec<Value>]| -> Vec<String> {
            let line = |row: &Vec<Value>| row.iter().map(Value::to_json).collect::<Json>();
            rows.iter().map(|row| line(row).to_string()).collect()
        };
        assert_eq!(
            text(&answered),
            text(&expected),
            "{}: {asked:?}\n{:?}",
            self.kind,
            plan.read()
        );
        answered
    }
}

/// The statements that create and fill the table, its rows, and the generator in its final state.
fn filled(kind: SourceKind, before: &str, edges: &[Edge]) -> (String, Vec<RowMap>, SeededRng) {
    let mut rng = SeededRng::new(0xED6E);
    let declared = edges
        .iter()
        .map(|it| format!("{} {}", quoted(kind, it.column), it.declared));
    let declared: Vec<String> = declared.collect();
    let mut sql = format!(
        "{before} CREATE TABLE {TABLE} (id integer PRIMARY KEY, {});",
        declared.join(", ")
    );
    let mut rows = Vec::new();
    for id in 0..ROWS {
        let id = i64::try_from(id).unwrap();
        let mut row = BTreeMap::from([("id".to_owned(), Value::Integer(id.into()))]);
        let mut literals = vec![id.to_string()];
        for it in edges {
            let drawn = rng.pick(&it.held).filter(|_| !rng.clone().percent(15));
            let null = ("NULL".to_owned(), Value::Null);
            let (literal, value) = drawn.cloned().unwrap_or(null);
            rng.next_u64();
            literals.push(literal);
            row.insert(it.column.to_owned(), value);
        }
        write!(sql, "INSERT INTO {TABLE} VALUES ({});", literals.join(", ")).unwrap();
        rows.push(row);
    }
    (sql, rows, rng)
}

fn operands(edge: &Edge) -> Vec<Json> {
    let mut operands: Vec<Json> = edge.asked.clone();
    for (_, value) in &edge.held {
        let json = value.to_json();
        // The filter language refuses a NUL.
        let askable = *value != Value::Null && !json.as_str().is_some_and(|it| it.contains('\0'));
        if askable && !operands.contains(&json) {
            operands.push(json);
        }
    }
    operands
}

/// The operators with an operand.
fn ops(datatype: Datatype) -> &'static [&'static str] {
    let all = operators(datatype);
    all.strip_suffix(&["is_null"]).unwrap_or(all)
}

fn mapping(kind: SourceKind, edges: &[Edge]) -> String {
    let mut text = crate::stores::mapping(kind, &[(TABLE, &[])]);
    for edge in edges {
        write!(
            text,
            "\n[streams.{TABLE}.fields.{}]\ncolumn = {}\ndatatype = \"{}\"\n",
            edge.field,
            json!(edge.column),
            edge.datatype
        )
        .unwrap();
    }
    text
}
