//! The engines to compare with, each used as its documentation advises: SQLite's FTS5 and
//! PostgreSQL's `tsvector`, both asked for the ten best documents with a snippet of each.
#![expect(
    clippy::disallowed_methods,
    reason = "statements without values, on databases of the benchmark's own"
)]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rusqlite::Connection;
use tokio_postgres::{Client, NoTls, Statement};
use wayleave_test::PostgresServer;

use super::corpus::{self, Question};

/// Number of documents to return.
pub(crate) const WANTED: u32 = 10;

const FTS5: &str = "SELECT rowid, rank, snippet(docs, -1, '<mark>', '</mark>', '…', 24) FROM docs \
     WHERE docs MATCH ?1 ORDER BY rank LIMIT ?2";

// Headlines are computed for the ten only.
const TSVECTOR: &str = "SELECT id, r, ts_headline('english', body, q, \
       'StartSel=<mark>, StopSel=</mark>') \
     FROM (SELECT id, body, q, ts_rank(tsv, q) AS r FROM docs, to_tsquery('english', $1) q \
       WHERE tsv @@ q ORDER BY r DESC LIMIT $2) best ORDER BY r DESC";

/// The cost of building an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuildCost {
    /// The time, including writing the documents.
    pub(crate) time: Duration,
    /// Bytes on disk, including the documents.
    pub(crate) bytes: u64,
}

/// A SQLite database with the documents in an FTS5 table.
pub(crate) struct Fts5 {
    connection: Mutex<Connection>,
}

impl Fts5 {
    /// Creates the database in a folder.
    pub(crate) fn make(folder: &Path, documents: u64) -> Result<(Self, BuildCost)> {
        let path = path(folder);
        let began = Instant::now();
        let mut connection = Connection::open(&path)?;
        connection.execute_batch(
            "PRAGMA synchronous = OFF; \
             CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'porter unicode61');",
        )?;
        let all = connection.transaction()?;
        {
            let mut insert =
                all.prepare("INSERT INTO docs (rowid, title, body) VALUES (?1, ?2, ?3)")?;
            for text in corpus::documents(documents) {
                insert.execute((i64::try_from(text.id)?, &text.title, &text.body))?;
            }
        }
        all.commit()?;
        connection.execute_batch("INSERT INTO docs (docs) VALUES ('optimize'); VACUUM;")?;
        let time = began.elapsed();
        let bytes = std::fs::metadata(&path)?.len();
        Ok((Self::open(folder)?, BuildCost { time, bytes }))
    }

    /// Opens the database that is in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let connection = Connection::open(path(folder))?;
        // Map all of it into memory, so that reads need no system call.
        connection.execute_batch("PRAGMA mmap_size = 4294967296; PRAGMA cache_size = -262144;")?;
        let connection = Mutex::new(connection);
        Ok(Self { connection })
    }

    /// The keys of the best documents.
    pub(crate) fn ask(&self, question: &Question) -> Result<Vec<i64>> {
        let connection = self.connection.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(FTS5)?;
        let mut rows = statement.query((question.fts5(), WANTED))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let _snippet: String = row.get(2)?;
            found.push(row.get(0)?);
        }
        Ok(found)
    }

    /// Number of matching documents.
    pub(crate) fn count(&self, question: &Question) -> Result<u64> {
        let sql = "SELECT count(*) FROM docs WHERE docs MATCH ?1";
        let connection = self.connection.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(sql)?;
        let count: i64 = statement.query_row([question.fts5()], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("fts5.db")
}

/// A PostgreSQL database with the documents, a `tsvector` beside each and a GIN index over it.
pub(crate) struct Tsvector {
    client: Client,
    statement: Statement,
}

impl Tsvector {
    /// Creates a database on a server.
    pub(crate) async fn make(server: &PostgresServer, documents: u64) -> Result<(Self, BuildCost)> {
        const PORTION: usize = 10_000;
        let database = server
            .fresh_database(
                "search",
                "CREATE TABLE docs (id bigint PRIMARY KEY, title text NOT NULL, body text NOT NULL, \
                 tsv tsvector GENERATED ALWAYS AS \
                 (to_tsvector('english', title || ' ' || body)) STORED)",
            )
            .await?;
        let dsn = format!("{}?sslmode=disable", database.dsn);
        let (client, connection) = tokio_postgres::connect(&dsn, NoTls).await?;
        // Ends with the client. An error of the session also fails the next statement.
        tokio::spawn(connection);
        let settings = "SET maintenance_work_mem = '512MB'; SET work_mem = '64MB'; SET jit = off";
        client.batch_execute(settings).await?;
        let began = Instant::now();
        let insert = client
            .prepare(
                "INSERT INTO docs (id, title, body) \
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])",
            )
            .await?;
        let mut all = corpus::documents(documents);
        loop {
            let (mut ids, mut titles, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
            for text in all.by_ref().take(PORTION) {
                ids.push(i64::try_from(text.id)?);
                titles.push(text.title);
                bodies.push(text.body);
            }
            if ids.is_empty() {
                break;
            }
            client.execute(&insert, &[&ids, &titles, &bodies]).await?;
        }
        client
            .batch_execute("CREATE INDEX docs_tsv ON docs USING gin (tsv)")
            .await?;
        client.batch_execute("VACUUM ANALYZE docs").await?;
        let time = began.elapsed();
        let bytes: i64 = client
            .query_one("SELECT pg_total_relation_size('docs')", &[])
            .await?
            .try_get(0)?;
        let statement = client.prepare(TSVECTOR).await?;
        let made = BuildCost {
            time,
            bytes: u64::try_from(bytes)?,
        };
        Ok((Self { client, statement }, made))
    }

    /// The keys of the best documents.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Vec<i64>> {
        let wanted = i64::from(WANTED);
        let rows = self
            .client
            .query(&self.statement, &[&question.tsquery(), &wanted])
            .await?;
        rows.iter()
            .map(|row| {
                let _headline: &str = row.try_get(2)?;
                row.try_get(0).context("a key")
            })
            .collect()
    }

    /// Number of matching documents.
    pub(crate) async fn count(&self, question: &Question) -> Result<u64> {
        let sql = "SELECT count(*) FROM docs WHERE tsv @@ to_tsquery('english', $1)";
        let row = self.client.query_one(sql, &[&question.tsquery()]).await?;
        Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
    }
}
