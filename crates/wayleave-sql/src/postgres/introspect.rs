//! Reads the catalogue of one PostgreSQL schema in a handful of statements, however many tables it
//! has.
//!
//! Partitions count as part of their table. Members of extensions are left out: they describe the
//! extension, not the data.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use wayleave_model::catalogue::{Catalogue, ForeignKey, TableKind};
use wayleave_model::mapping::SourceKind;
use wayleave_store::{IntrospectOptions, Progress, Step, StoreError};

use super::catalogue::{COLUMNS, CatalogueColumn};
use super::connect::PgCatalogueSession;
use crate::assemble::TableAssembler;
use crate::check_constraints::closed_lists;

// The session's own schema is the first of its search path, not counting `pg_catalog`, which always
// comes first.
const SCHEMAS: &str = "SELECT nspname::text, COALESCE(nspname = \
      (SELECT name FROM unnest(current_schemas(false)) WITH ORDINALITY path(name, place) \
       WHERE name <> 'pg_catalog' ORDER BY place LIMIT 1), false) \
    FROM pg_catalog.pg_namespace \
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' \
      AND has_schema_privilege(oid, 'USAGE')";

// With this path no object of the schema can replace a function or operator named below, and types
// of the schema are still printed without its name.
const SEARCH_PATH: &str =
    "SELECT set_config('search_path', 'pg_catalog, ' || pg_catalog.quote_ident($1), true)";

/// The relations to read, aliased as `c`.
macro_rules! relations {
    () => {
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1 \
           AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition"
    };
}

const TABLES: &str = concat!(
    "SELECT c.relname::text, c.relkind::text, \
       CASE WHEN c.relkind = 'p' THEN (SELECT sum(l.reltuples)::float8 \
            FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid \
            WHERE p.isleaf AND l.reltuples >= 0) \
         WHEN c.relkind IN ('r', 'm') THEN c.reltuples::float8 END, \
       obj_description(c.oid, 'pg_class') \
     FROM ",
    relations!(),
    " WHERE has_any_column_privilege(c.oid, 'SELECT') \
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass \
            AND d.objid = c.oid AND d.deptype = 'e')"
);

const LABELS: &str =
    "SELECT enumtypid, enumlabel::text FROM pg_enum ORDER BY enumtypid, enumsortorder";

const KEYS: &str = concat!(
    "SELECT c.relname::text, i.indisprimary, array_agg(a.attname::text ORDER BY k.place) \
     FROM ",
    relations!(),
    " JOIN pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indisvalid \
       AND i.indpred IS NULL AND i.indexprs IS NULL \
     CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place) \
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum \
     WHERE k.place <= i.indnkeyatts GROUP BY c.relname, i.indexrelid, i.indisprimary"
);

// A reference to a partitioned table is listed again for each partition, under a parent.
const REFERENCES: &str = concat!(
    "SELECT c.relname::text, t.relname::text, \
       (SELECT array_agg(a.attname::text ORDER BY p.place) \
        FROM unnest(k.conkey) WITH ORDINALITY p(attnum, place) \
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = p.attnum), \
       (SELECT array_agg(a.attname::text ORDER BY p.place) \
        FROM unnest(k.confkey) WITH ORDINALITY p(attnum, place) \
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = p.attnum) \
     FROM ",
    relations!(),
    " JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0 \
     JOIN pg_class t ON t.oid = k.confrelid AND t.relnamespace = c.relnamespace"
);

const CHECKS: &str = concat!(
    "SELECT c.relname::text, pg_get_constraintdef(k.oid) FROM ",
    relations!(),
    " JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'c' AND k.convalidated \
     ORDER BY c.oid, k.conname"
);

/// Reads the catalogue of the requested schema, or of the session's own.
pub(super) async fn catalogue(
    session: &mut PgCatalogueSession<'_>,
    options: &IntrospectOptions,
    progress: Progress<'_>,
) -> Result<Catalogue, StoreError> {
    let mut reader = CatalogueReader { session, progress };
    let schema = reader.schema(options).await?;
    let schema = schema.as_str();
    reader
        .session
        .read("choosing the schema", SEARCH_PATH, &[&schema])
        .await?;
    let mut assembly = TableAssembler::default();
    for row in reader
        .rows("tables", "reading tables", TABLES, Some(schema))
        .await?
    {
        let (name, kind, estimate, comment) = reader.fields(|| {
            Ok((
                row.try_get(0)?,
                row.try_get::<_, String>(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
            ))
        })?;
        assembly.table(name, table_kind(&kind), row_estimate(estimate), comment);
    }
    let labels = reader.labels().await?;
    let of_all_tables: Option<&str> = None;
    let rows = reader
        .rows_with(
            "columns",
            "reading columns",
            COLUMNS,
            &[&schema, &of_all_tables],
        )
        .await?;
    for row in &rows {
        let column = reader.fields(|| CatalogueColumn::from_row(row))?;
        if column.selectable {
            let table = column.table.clone();
            assembly.column(&table, column.described(&labels));
        }
    }
    for row in reader
        .rows("keys", "reading keys", KEYS, Some(schema))
        .await?
    {
        let (table, primary, columns) = reader.fields(|| {
            Ok((
                row.try_get::<_, String>(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
            ))
        })?;
        assembly.key(&table, primary, columns);
    }
    for row in reader
        .rows("references", "reading references", REFERENCES, Some(schema))
        .await?
    {
        let (table, key) = reader.fields(|| {
            let (columns, to_columns) = (row.try_get(2)?, row.try_get(3)?);
            let key = ForeignKey {
                columns,
                to_table: row.try_get(1)?,
                to_columns,
            };
            Ok((row.try_get::<_, String>(0)?, key))
        })?;
        assembly.foreign_key(&table, key);
    }
    for row in reader
        .rows("checks", "reading checks", CHECKS, Some(schema))
        .await?
    {
        let (table, definition) =
            reader.fields(|| Ok((row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?)))?;
        for list in closed_lists(&definition) {
            assembly.closed_list(&table, list, |a, b| a == b);
        }
    }
    Ok(assembly.finish(SourceKind::Postgres, Some(schema.to_owned())))
}

/// Runs statements and reports progress.
struct CatalogueReader<'a, 's> {
    session: &'a mut PgCatalogueSession<'s>,
    progress: Progress<'a>,
}

impl CatalogueReader<'_, '_> {
    async fn rows(
        &mut self,
        what: &'static str,
        doing: &'static str,
        sql: &'static str,
        schema: Option<&str>,
    ) -> Result<Vec<Row>, StoreError> {
        match &schema {
            Some(schema) => self.rows_with(what, doing, sql, &[schema]).await,
            None => self.rows_with(what, doing, sql, &[]).await,
        }
    }

    async fn rows_with(
        &mut self,
        what: &'static str,
        doing: &'static str,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.session.read(doing, sql, values).await?;
        (self.progress)(Step::Read {
            what,
            rows: rows.len(),
        });
        Ok(rows)
    }

    /// Decodes one row. A mismatch is a bug of this crate, and the error says so.
    fn fields<T>(
        &self,
        decode: impl FnOnce() -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        decode().map_err(|error| self.session.error("decoding the catalogue", &error))
    }

    async fn schema(&mut self, options: &IntrospectOptions) -> Result<String, StoreError> {
        let mut visible = Vec::new();
        let mut own = None;
        for row in self
            .rows("schemas", "reading schemas", SCHEMAS, None)
            .await?
        {
            let (name, current): (String, bool) =
                self.fields(|| Ok((row.try_get(0)?, row.try_get(1)?)))?;
            if current {
                own = Some(name.clone());
            }
            visible.push(name);
        }
        let wanted = options.schema.clone().or(own);
        visible.sort();
        match wanted {
            Some(schema) if visible.contains(&schema) => Ok(schema),
            schema => Err(StoreError::NoSchema { schema, visible }),
        }
    }

    /// The labels of each enum, by its type.
    async fn labels(&mut self) -> Result<HashMap<u32, Vec<String>>, StoreError> {
        let mut labels: HashMap<u32, Vec<String>> = HashMap::new();
        for row in self
            .rows("labels", "reading enum labels", LABELS, None)
            .await?
        {
            let (id, label) = self.fields(|| Ok((row.try_get(0)?, row.try_get(1)?)))?;
            labels.entry(id).or_default().push(label);
        }
        Ok(labels)
    }
}

fn table_kind(relkind: &str) -> TableKind {
    match relkind {
        "v" => TableKind::View,
        "m" => TableKind::MaterializedView,
        _ => TableKind::Table,
    }
}

/// The planner's estimate, which is -1 until the table has been vacuumed or analyzed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate held as a float; it is not negative here, and past 2^53 it is still one"
)]
fn row_estimate(rows: Option<f64>) -> Option<u64> {
    rows.filter(|rows| *rows >= 0.0).map(|rows| rows as u64)
}
