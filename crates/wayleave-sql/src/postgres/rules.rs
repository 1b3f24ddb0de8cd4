//! The constraints that PostgreSQL enforces on a table.

use tokio_postgres::{Error, Row};
use wayleave_plan::write::{ForeignKeyRule, TableRules, UniqueRule};
use wayleave_store::StoreError;

use super::pool::PgSession;
use super::read::Database;
use super::types::Kind;
use crate::compile::Shape;

/// The unique indexes and exclusion constraints of table `$2` in schema `$1` and of its partitions:
/// their columns, those compared by code point, and whether anything else takes part. A view or
/// other relation yields one opaque row, because its rules are unknown. An index that is still
/// being built already refuses rows.
const UNIQUE: &str = "SELECT array_remove(array_agg(a.attname::text), NULL), \
  array_remove(array_agg(CASE WHEN i.indisunique AND (t.typtype = 'e' \
      OR t.typnamespace = 'pg_catalog'::regnamespace AND COALESCE(l.collisdeterministic, true)) \
    THEN a.attname::text END), NULL), \
  bool_or(a.attname IS NULL OR a.attgenerated <> '' OR i.indisexclusion OR i.indpred IS NOT NULL) \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
CROSS JOIN LATERAL (SELECT c.oid AS relid \
  UNION SELECT relid::oid FROM pg_catalog.pg_partition_tree(c.oid)) p \
JOIN pg_catalog.pg_index i ON i.indrelid = p.relid AND (i.indisunique OR i.indisexclusion) \
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indcollation::oid[]) \
  WITH ORDINALITY k(attnum, compared, place) \
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
  AND k.attnum <> 0 \
LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
LEFT JOIN pg_catalog.pg_collation l ON l.oid = k.compared \
WHERE n.nspname = $1::text AND c.relname = $2::text AND k.place <= i.indnkeyatts \
GROUP BY i.indexrelid \
UNION ALL SELECT '{}', '{}', true \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind NOT IN ('r', 'p')";

/// The foreign keys of the table, and those that lead to it. A key of or to a partitioned table is
/// listed again for each partition, under a parent.
const FOREIGN_KEYS: &str = "WITH ours AS ( \
  SELECT c.oid, c.relnamespace FROM pg_catalog.pg_class c \
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
  WHERE n.nspname = $1::text AND c.relname = $2::text \
), keys AS ( \
  SELECT false AS leads_here, k.* FROM pg_catalog.pg_constraint k \
  JOIN ours ON k.conrelid = ours.oid LEFT JOIN pg_catalog.pg_constraint p ON p.oid = k.conparentid \
  WHERE k.contype = 'f' AND p.conrelid IS DISTINCT FROM k.conrelid \
  UNION ALL SELECT true, k.* FROM pg_catalog.pg_constraint k \
  JOIN ours ON k.confrelid = ours.oid LEFT JOIN pg_catalog.pg_constraint p ON p.oid = k.conparentid \
  WHERE k.contype = 'f' AND p.confrelid IS DISTINCT FROM k.confrelid \
) \
SELECT k.leads_here, CASE WHEN o.relnamespace = ours.relnamespace THEN o.relname::text END, \
  (SELECT array_agg(a.attname::text ORDER BY p.place) \
   FROM unnest(k.conkey) WITH ORDINALITY p(attnum, place) \
   JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = p.attnum), \
  (SELECT array_agg(a.attname::text ORDER BY p.place) \
   FROM unnest(k.confkey) WITH ORDINALITY p(attnum, place) \
   JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = p.attnum) \
FROM keys k CROSS JOIN ours \
JOIN pg_catalog.pg_class o ON o.oid = CASE WHEN k.leads_here THEN k.conrelid ELSE k.confrelid END";

impl Database {
    /// The rules of a table.
    pub(super) async fn table_rules(
        &self,
        session: &PgSession,
        shape: &Shape<Kind>,
    ) -> Result<TableRules, StoreError> {
        let failed = |error: Error| self.failed("reading the table's keys", &error);
        let named = [shape.schema.as_deref(), Some(&*shape.table)];
        let unique = session.query(UNIQUE, &named).await.map_err(failed)?;
        let unique = unique.iter().map(unique_rule).collect::<Result<_, _>>();
        let mut rules = TableRules {
            unique: unique.map_err(failed)?,
            ..TableRules::default()
        };
        for row in session.query(FOREIGN_KEYS, &named).await.map_err(failed)? {
            let (leads_here, rule) = foreign_key(&row).map_err(failed)?;
            let keys = if leads_here {
                &mut rules.referred
            } else {
                &mut rules.refers
            };
            keys.push(rule);
        }
        Ok(rules)
    }
}

fn unique_rule(row: &Row) -> Result<UniqueRule, Error> {
    Ok(UniqueRule {
        columns: row.try_get(0)?,
        exact: row.try_get(1)?,
        is_opaque: row.try_get(2)?,
    })
}

fn foreign_key(row: &Row) -> Result<(bool, ForeignKeyRule), Error> {
    let (from, to): (Vec<String>, Vec<String>) = (row.try_get(2)?, row.try_get(3)?);
    let rule = ForeignKeyRule {
        other: row.try_get(1)?,
        on: from.into_iter().zip(to).collect(),
    };
    Ok((row.try_get(0)?, rule))
}
