//! Golden statements, one file per dialect.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use wayleave_model::digest::Digest;
use wayleave_model::mapping::{AggregateOp, Datatype, SourceKind};
use wayleave_plan::plan::{
    Aggregate, Column, ColumnOrigin, Comparison, Granularity, GroupKey, Groups, OrderBy,
    PartitionLimit, Predicate, Read, Rows, TARGET, Target, TextMatch,
};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::{Dialect, NativeColumn, Shape, Statement, Tables, compile};
use crate::compile::PlanParts;
use crate::mysql::dialect::{MysqlDialect, Offsets};
use crate::mysql::digits::Digits;
use crate::mysql::repertoire::Repertoire;
use crate::mysql::types as mysql;
use crate::postgres::dialect::PostgresDialect;
use crate::postgres::types as postgres;
use crate::sqlite::dialect::SqliteDialect;
use crate::sqlite::types::Affinity;

pub(super) fn column(name: &str, datatype: Datatype) -> Column {
    of_table(TARGET, name, datatype)
}

fn of_table(table: u16, name: &str, datatype: Datatype) -> Column {
    Column {
        origin: ColumnOrigin::Stored {
            table,
            name: name.to_owned(),
        },
        datatype,
        many: false,
    }
}

fn of_group(index: usize, datatype: Datatype) -> Column {
    Column {
        origin: ColumnOrigin::Group {
            index,
            label: String::new(),
        },
        datatype,
        many: false,
    }
}

/// Compiles a read of a table of that shape.
pub(super) fn compile_read<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    read: &'a Read,
) -> Result<Statement<'a>, StoreError> {
    static TARGET_OF_TESTS: LazyLock<Target> = LazyLock::new(|| Target {
        connection_id: String::new(),
        source: String::new(),
        kind: SourceKind::Sqlite,
        schema: None,
        table: String::new(),
        mapping: Digest::from_bytes(b""),
        suspended: None,
    });
    let plan = PlanParts {
        target: &TARGET_OF_TESTS,
        joins: &[],
        read,
        lock: false,
    };
    compile(dialect, &Tables::new(Arc::new(shape.clone())), plan)
}

fn by(name: &str, datatype: Datatype, descending: bool, nullable: bool) -> OrderBy {
    OrderBy {
        column: column(name, datatype),
        descending,
        nullable,
    }
}

fn rows(predicate: Predicate, order: Vec<OrderBy>, after: Option<Vec<Value>>) -> Read {
    Read::Rows(Rows {
        previews: false,
        columns: vec![
            column("id", Datatype::Integer),
            column("na\"me`", Datatype::String),
            column("price", Datatype::Decimal),
        ]
        .into(),
        predicate,
        order,
        after,
        per_parent: None,
        limit: 26,
    })
}

fn compare(name: &str, datatype: Datatype, comparison: Comparison, value: Value) -> Predicate {
    Predicate::Compare {
        column: column(name, datatype),
        comparison,
        value,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn id() -> OrderBy {
    by("id", Datatype::Integer, false, false)
}

/// Filters, each with its title in the golden files.
fn filters() -> Vec<(&'static str, Read)> {
    let name = || column("na\"me`", Datatype::String);
    let named = |comparison, value| compare("na\"me`", Datatype::String, comparison, value);
    let hostile = "'; DROP TABLE t; -- \" ` \\";
    vec![
        ("every row", rows(Predicate::True, vec![id()], None)),
        (
            "one record",
            rows(
                compare("id", Datatype::Integer, Comparison::Eq, Value::Integer(7)),
                vec![id()],
                None,
            ),
        ),
        (
            "text is bound, never written",
            rows(named(Comparison::Eq, text(hostile)), vec![id()], None),
        ),
        (
            "text greater than a text with a NUL in it",
            rows(named(Comparison::Gt, text("a\0b")), vec![id()], None),
        ),
        (
            "a beginning and a part",
            rows(
                Predicate::And(vec![
                    Predicate::Like {
                        column: name(),
                        text: "50%_".into(),
                        place: TextMatch::Beginning,
                        fold: false,
                    },
                    Predicate::Like {
                        column: name(),
                        text: "%".into(),
                        place: TextMatch::Anywhere,
                        fold: false,
                    },
                ]),
                vec![id()],
                None,
            ),
        ),
        (
            "any of, none of, none at all",
            rows(
                Predicate::Or(vec![
                    Predicate::In {
                        column: column("id", Datatype::Integer),
                        values: vec![Value::Integer(1), Value::Integer(1 << 70)],
                        negated: false,
                    },
                    Predicate::In {
                        column: name(),
                        values: vec![text("a"), text("b")],
                        negated: true,
                    },
                    Predicate::IsNull {
                        column: name(),
                        negated: false,
                    },
                ]),
                vec![id()],
                None,
            ),
        ),
    ]
}

/// Pages, groups and measures.
fn more_plans() -> Vec<(&'static str, Read)> {
    vec![
        ("decimals, numbers, times and truth", typed()),
        (
            "a page by key",
            rows(Predicate::True, vec![id()], Some(vec![Value::Integer(7)])),
        ),
        (
            "a page by two columns that are never NULL",
            rows(
                Predicate::True,
                vec![
                    by("small", Datatype::Integer, true, false),
                    by("id", Datatype::Integer, true, false),
                ],
                Some(vec![Value::Integer(3), Value::Integer(7)]),
            ),
        ),
        (
            "a page by a column that may be NULL, downwards",
            rows(
                Predicate::True,
                vec![by("at", Datatype::Datetime, true, true), id()],
                Some(vec![Value::Datetime(1), Value::Integer(7)]),
            ),
        ),
        (
            "a page after a NULL",
            rows(
                Predicate::True,
                vec![by("na\"me`", Datatype::String, false, true), id()],
                Some(vec![Value::Null, Value::Integer(7)]),
            ),
        ),
        ("the first of each", first_of_each()),
        (
            "a count",
            Read::Count {
                predicate: compare("id", Datatype::Integer, Comparison::Gt, Value::Integer(0)),
                exact: true,
            },
        ),
        ("measures of everything", measures()),
        ("groups", groups()),
        (
            "periods of a zone",
            periods("Europe/Berlin", Granularity::Quarter),
        ),
        (
            "hours of a zone",
            periods("Europe/Berlin", Granularity::Hour),
        ),
    ]
}

fn typed() -> Read {
    rows(
        Predicate::And(vec![
            compare(
                "price",
                Datatype::Decimal,
                Comparison::Gte,
                Value::Decimal("0.10000000000000000000000000000000001".into()),
            ),
            compare(
                "ratio",
                Datatype::Number,
                Comparison::Lt,
                Value::Number(0.5),
            ),
            compare("day", Datatype::Date, Comparison::Ne, Value::Date(0)),
            compare(
                "at",
                Datatype::Datetime,
                Comparison::Lte,
                Value::Datetime(1),
            ),
            compare(
                "active",
                Datatype::Boolean,
                Comparison::Eq,
                Value::Boolean(true),
            ),
        ]),
        vec![id()],
        None,
    )
}

fn first_of_each() -> Read {
    Read::Rows(Rows {
        previews: false,
        columns: vec![column("id", Datatype::Integer)].into(),
        predicate: Predicate::True,
        order: vec![id()],
        after: None,
        per_parent: Some(PartitionLimit {
            by: vec![column("small", Datatype::Integer)],
            limit: 3,
        }),
        limit: 30,
    })
}

fn group_order(index: usize, datatype: Datatype, descending: bool) -> OrderBy {
    OrderBy {
        column: of_group(index, datatype),
        descending,
        nullable: true,
    }
}

fn measures() -> Read {
    let measure = |op, column| Aggregate {
        op,
        column: Some(column),
        filter: Predicate::True,
    };
    let datatypes = [
        Datatype::Integer,
        Datatype::Integer,
        Datatype::Integer,
        Datatype::Decimal,
        Datatype::Number,
        Datatype::String,
        Datatype::Datetime,
    ];
    Read::Groups(Groups {
        by: Vec::new(),
        columns: datatypes
            .into_iter()
            .enumerate()
            .map(|(index, datatype)| of_group(index, datatype))
            .collect(),
        having: Predicate::True,
        after: None,
        aggregates: vec![
            Aggregate {
                op: AggregateOp::Count,
                column: None,
                filter: Predicate::True,
            },
            measure(
                AggregateOp::CountDistinct,
                column("na\"me`", Datatype::String),
            ),
            measure(AggregateOp::Sum, column("id", Datatype::Integer)),
            measure(AggregateOp::Avg, column("price", Datatype::Decimal)),
            measure(AggregateOp::Sum, column("ratio", Datatype::Number)),
            measure(AggregateOp::Min, column("na\"me`", Datatype::String)),
            measure(AggregateOp::Max, column("at", Datatype::Datetime)),
        ],
        predicate: Predicate::True,
        order: Vec::new(),
        limit: 1,
    })
}

fn groups() -> Read {
    Read::Groups(Groups {
        by: vec![
            GroupKey::Column(column("na\"me`", Datatype::String)),
            GroupKey::Column(column("active", Datatype::Boolean)),
        ],
        aggregates: vec![Aggregate {
            op: AggregateOp::Avg,
            column: Some(column("price", Datatype::Decimal)),
            filter: Predicate::True,
        }],
        predicate: compare("id", Datatype::Integer, Comparison::Gt, Value::Integer(0)),
        columns: vec![
            of_group(0, Datatype::String),
            of_group(1, Datatype::Boolean),
            of_group(2, Datatype::Decimal),
        ],
        having: Predicate::True,
        after: None,
        order: vec![
            group_order(2, Datatype::Decimal, true),
            group_order(0, Datatype::String, false),
            group_order(1, Datatype::Boolean, false),
        ],
        limit: 11,
    })
}

fn periods(zone: &str, granularity: Granularity) -> Read {
    Read::Groups(Groups {
        by: vec![GroupKey::Period {
            column: column("at", Datatype::Datetime),
            granularity,
            time_zone: zone.to_owned(),
        }],
        aggregates: vec![Aggregate {
            op: AggregateOp::Count,
            column: None,
            filter: Predicate::True,
        }],
        predicate: Predicate::True,
        columns: vec![of_group(0, Datatype::Date), of_group(1, Datatype::Integer)],
        having: Predicate::True,
        after: None,
        order: vec![group_order(0, Datatype::Date, false)],
        limit: 11,
    })
}

fn shape<K: Clone>(schema: Option<&str>, kinds: &[(&str, K, bool)]) -> Shape<K> {
    let columns: BTreeMap<String, NativeColumn<K>> = kinds
        .iter()
        .map(|(name, kind, not_null)| {
            let native = NativeColumn {
                kind: kind.clone(),
                // As the plans of these tests read it.
                datatype: match *name {
                    "na\"me`" => Datatype::String,
                    "price" => Datatype::Decimal,
                    "ratio" => Datatype::Number,
                    "day" => Datatype::Date,
                    "at" => Datatype::Datetime,
                    "active" => Datatype::Boolean,
                    _ => Datatype::Integer,
                },
                many: false,
                not_null: *not_null,
                type_id: None,
            };
            ((*name).to_owned(), native)
        })
        .collect();
    Shape {
        version: None,
        schema: schema.map(str::to_owned),
        table: "the \"table` '".to_owned(),
        columns,
        unique: std::sync::OnceLock::new(),
    }
}

fn sqlite_shape() -> Shape<Affinity> {
    shape(
        None,
        &[
            ("id", Affinity::Integer, true),
            ("small", Affinity::Integer, true),
            ("na\"me`", Affinity::Text, false),
            ("price", Affinity::Numeric, false),
            ("ratio", Affinity::Real, false),
            ("day", Affinity::Numeric, false),
            ("at", Affinity::Numeric, false),
            ("active", Affinity::Numeric, false),
        ],
    )
}

fn postgres_shape() -> Shape<postgres::Kind> {
    use postgres::Kind;
    let text = Kind::Text(postgres::Order::C);
    shape(
        Some("pub\"lic"),
        &[
            ("id", Kind::Integer, true),
            ("small", Kind::Integer, true),
            ("na\"me`", text, false),
            ("price", Kind::Numeric, false),
            ("ratio", Kind::Float, false),
            ("day", Kind::Date, false),
            ("at", Kind::TimestampTz, false),
            ("active", Kind::Boolean, false),
        ],
    )
}

fn mysql_shape() -> Shape<mysql::Kind> {
    use mysql::Kind;
    let text = Kind::Text {
        by_code_point: None,
        repertoire: Repertoire::All,
        collation: String::new(),
    };
    shape(
        Some("data`base"),
        &[
            ("id", Kind::Integer, true),
            ("small", Kind::Integer, true),
            ("na\"me`", text, false),
            (
                "price",
                Kind::Decimal(Digits::declared("decimal(15,2)")),
                false,
            ),
            ("ratio", Kind::Float, false),
            ("day", Kind::Date, false),
            ("at", Kind::Datetime, false),
            ("active", Kind::Integer, false),
        ],
    )
}

fn berlin() -> MysqlDialect {
    let mut dialect = MysqlDialect::default();
    dialect.zones.insert(
        (column("at", Datatype::Datetime), "Europe/Berlin".to_owned()),
        Offsets {
            before: 3_600,
            changes: vec![
                (1_711_846_800_000_000, 7_200),
                (1_729_990_800_000_000, 3_600),
            ],
        },
    );
    dialect
}

fn check<D: Dialect>(dialect: &D, shape: &Shape<D::Kind>, golden: &str) {
    let mut shown = String::new();
    for (name, read) in filters().into_iter().chain(more_plans()) {
        let statement = compile_read(dialect, shape, &read).unwrap();
        writeln!(shown, "-- {name}\n{}", statement.text).unwrap();
        for bind in &statement.binds {
            writeln!(shown, "--   {bind:?}").unwrap();
        }
        shown.push('\n');
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/compile");
    wayleave_test::assert_golden(format!("{folder}/{golden}.sql"), &shown);
}

#[test]
fn sqlite_statements_are_as_agreed() {
    check(&SqliteDialect::default(), &sqlite_shape(), "sqlite");
}

#[test]
fn postgres_statements_are_as_agreed() {
    check(&PostgresDialect::default(), &postgres_shape(), "postgres");
}

#[test]
fn mysql_statements_are_as_agreed() {
    check(&berlin(), &mysql_shape(), "mysql");
}

#[test]
fn a_column_the_table_does_not_have_is_drift() {
    let read = rows(
        compare("gone", Datatype::Integer, Comparison::Eq, Value::Integer(1)),
        vec![id()],
        None,
    );
    let error = compile_read(&SqliteDialect::default(), &sqlite_shape(), &read).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column `gone` of table `the \"table` '` is not in the source any more"
    );
}

#[test]
fn a_name_with_a_nul_is_refused() {
    let mut shape = sqlite_shape();
    shape.table = "t\0; DROP TABLE t".to_owned();
    let read = measures();
    let error = compile_read(&SqliteDialect::default(), &shape, &read).unwrap_err();
    assert!(matches!(error, StoreError::SchemaDrift { .. }), "{error:?}");
}

#[test]
fn every_value_is_bound_and_none_is_written() {
    // The statement is the same text whatever the value is.
    let texts = ["x", "'", "\"", "`", "\\", "$1", "?", "--", "/*", ";", "\0"];
    let of = |value: &str| {
        let read = rows(
            compare("na\"me`", Datatype::String, Comparison::Gt, text(value)),
            vec![by("na\"me`", Datatype::String, false, true), id()],
            Some(vec![text(value), Value::Integer(1)]),
        );
        compile_read(&berlin(), &mysql_shape(), &read).unwrap().text
    };
    for value in texts {
        assert_eq!(of(value), of("x"), "{value:?}");
    }
}
