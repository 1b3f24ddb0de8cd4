//! The triggers with which a database announces its changes: the SQL that installs them, and the
//! recognition of installed ones.
//!
//! A notification names the table and nothing else. Any role of the database can send one, which
//! costs a read and reveals nothing.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use crate::adapter::TableName;

/// The channel that the triggers notify.
pub(super) const CHANNEL: &str = "wayleave_changes";
/// The function that every trigger runs.
const FUNCTION: &str = "wayleave_notify";
/// Sends the OID of the table. PostgreSQL delivers it when the change is committed, once for each
/// transaction.
const BODY: &str = "\nBEGIN\n  \
    PERFORM pg_catalog.pg_notify('wayleave_changes', TG_RELID::pg_catalog.text);\n  \
    RETURN NULL;\nEND\n";

/// Finds the tables `$2` in the schemas `$1`, with everything that inherits from them, and whether
/// each is covered: by an enabled trigger for all four events, with the function body `$3`, while
/// nothing changes what our role sees without firing it. A notification is sent for the table that
/// a statement names, so a partition needs a trigger of its own.
///
/// Altering a table fires no trigger, and neither does a change while its trigger was disabled: the
/// last column changes with the definitions of the table and its triggers.
const COVERAGE: &str = "WITH RECURSIVE member AS ( \
    SELECT w.place, c.oid \
    FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) \
      WITH ORDINALITY AS w(schema, name, place) \
    JOIN pg_catalog.pg_class c ON c.relname = w.name \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = w.schema OR (w.schema IS NULL AND pg_catalog.pg_table_is_visible(c.oid)) \
    UNION \
    SELECT m.place, i.inhrelid FROM member m JOIN pg_catalog.pg_inherits i ON i.inhparent = m.oid \
) \
SELECT m.place, m.oid, c.relkind IN ('r', 'p') AND NOT pg_catalog.row_security_active(c.oid) \
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_subscription_rel s WHERE s.srrelid = c.oid) \
  AND EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled = 'A' AND t.tgtype = 60 \
      AND t.tgqual IS NULL AND pg_catalog.cardinality(t.tgattr::int2[]) = 0 \
      AND pg_catalog.replace(p.prosrc, pg_catalog.chr(13), '') = $3::text), \
  pg_catalog.concat_ws(' ', c.xmin, pg_catalog.pg_relation_filenode(c.oid), \
    (SELECT pg_catalog.string_agg(a.xmin::text, ' ' ORDER BY a.attnum) \
     FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), \
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', t.oid, t.xmin, p.xmin), ' ' ORDER BY t.oid) \
     FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
     WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)) \
FROM member m JOIN pg_catalog.pg_class c ON c.oid = m.oid ORDER BY m.place, m.oid";

/// Whether every change of a table is announced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Coverage {
    /// The table and everything that inherits from it, if all of them have the trigger.
    pub(super) members: Option<Vec<u32>>,
    /// Changes with the definition of any of them.
    pub(super) definition: u64,
}

/// Determines the coverage of tables, in their order.
pub(super) async fn coverage(
    client: &Client,
    tables: &[TableName],
) -> Result<Vec<Coverage>, Error> {
    let schemas: Vec<Option<&str>> = tables.iter().map(|it| it.schema.as_deref()).collect();
    let names: Vec<&str> = tables.iter().map(|it| it.table.as_str()).collect();
    let values = [
        (
            &schemas as &(dyn tokio_postgres::types::ToSql + Sync),
            Type::TEXT_ARRAY,
        ),
        (&names, Type::TEXT_ARRAY),
        (&BODY, Type::TEXT),
    ];
    let rows = client.query_typed(COVERAGE, &values).await?;
    let members = rows.iter().map(Member::from_row);
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let places = (1_i64..).zip(tables);
    Ok(places.map(|(place, _)| covered(&members, place)).collect())
}

/// A requested table, or one that inherits from it.
struct Member {
    /// The position of the requested table.
    place: i64,
    oid: u32,
    is_covered: bool,
    definition: String,
}

impl Member {
    fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            place: row.try_get(0)?,
            oid: row.try_get(1)?,
            is_covered: row.try_get(2)?,
            definition: row.try_get(3)?,
        })
    }
}

fn covered(members: &[Member], place: i64) -> Coverage {
    let (mut oids, mut is_covered) = (Vec::new(), true);
    let mut hasher = DefaultHasher::new();
    for member in members.iter().filter(|it| it.place == place) {
        oids.push(member.oid);
        is_covered &= member.is_covered;
        (member.oid, &member.definition).hash(&mut hasher);
    }
    Coverage {
        members: (is_covered && !oids.is_empty()).then_some(oids),
        definition: hasher.finish(),
    }
}

/// The statements for an operator to run, so that changes of these tables are announced; `None` for
/// a name that no table can have. Running them again has no effect.
pub(super) fn install(tables: &[TableName]) -> Option<String> {
    let mut sql = format!(
        "CREATE OR REPLACE FUNCTION {FUNCTION}() RETURNS trigger\n\
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $wayleave${BODY}$wayleave$;\n"
    );
    for name in tables {
        let table = name.quoted()?;
        sql.extend([
            format!("\nDROP TRIGGER IF EXISTS {CHANNEL} ON {table};\n"),
            format!(
                "CREATE TRIGGER {CHANNEL} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}\n"
            ),
            format!("  FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}();\n"),
            format!("ALTER TABLE {table} ENABLE ALWAYS TRIGGER {CHANNEL};\n"),
        ]);
    }
    Some(sql)
}

impl TableName {
    /// The name in quotes. Their only escape is doubling, whatever the settings of a session.
    fn quoted(&self) -> Option<String> {
        let parts = self.schema.iter().chain([&self.table]);
        let quoted = parts.map(|part| crate::compile::sql::quoted('"', part));
        Some(quoted.collect::<Option<Vec<_>>>()?.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_notifies_the_channel() {
        assert!(BODY.contains(&format!("'{CHANNEL}'")));
    }

    #[test]
    fn a_hostile_name_stays_one_quoted_identifier() {
        let name = TableName {
            schema: Some("a\"; DROP TABLE b; --".to_owned()),
            table: "$wayleave$\\'\n".to_owned(),
        };
        let quoted = "\"a\"\"; DROP TABLE b; --\".\"$wayleave$\\'\n\"";
        assert_eq!(name.quoted().unwrap(), quoted);
        let sql = install(&[name]).unwrap();
        assert_eq!(sql.matches(quoted).count(), 3);
        let no_table = TableName {
            schema: None,
            table: "a\0b".to_owned(),
        };
        assert_eq!(install(&[no_table]), None);
    }
}
