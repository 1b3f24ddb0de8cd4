//! Collects what a call uses, for its activity record, where calls are recorded.
//!
//! The collector belongs to the current call and is found through its task, so that nothing between
//! the observer and a read has to pass it on.

use std::sync::Arc;

use wayleave_activity::CallCollector;
use wayleave_plan::Record;
use wayleave_plan::view::View;
use wayleave_plan::write::AuthorizedWrite;
use wayleave_store::WriteOutcome;

use crate::call_context::CallContext;

/// The collector of the current call.
pub(crate) fn collector() -> Option<Arc<CallCollector>> {
    wayleave_mcp::call_attachment()
}

/// Notes the deterministic data of an answer: the same call over the same records gives the same.
pub(crate) fn set_answer(data: &str) {
    if let Some(collector) = collector() {
        collector.set_answer(data.as_bytes());
    }
}

/// Like [`set_answer`], for a text, without its cursors: those contain a time.
pub(crate) fn set_answer_text(text: &str) {
    if let Some(collector) = collector() {
        let is_data = |line: &&str| {
            !line.starts_with("next_cursor=") && !line.starts_with("next_changes_since=")
        };
        let data: Vec<&str> = text.lines().filter(is_data).collect();
        collector.set_answer(data.join("\n").as_bytes());
    }
}

/// Notes the grant and the stream of a write, which may still be refused.
pub(crate) fn note_write(view: &View, write: &AuthorizedWrite) {
    let Some(collector) = collector() else {
        return;
    };
    let target = write.target();
    if let Some(connection) = view.connection(&target.connection_id) {
        collector.use_grant(
            &connection.grant_id,
            &target.connection_id,
            &connection.connector_key,
            *target.mapping.as_bytes(),
        );
    }
    collector.use_stream(&target.connection_id, write.stream().name());
}

/// Notes the record before and after a write.
pub(crate) fn note_written(write: &AuthorizedWrite, outcome: &WriteOutcome) {
    let Some(collector) = collector() else {
        return;
    };
    let id = write.record_id(&outcome.key);
    if outcome.before.is_some() {
        collector.use_records([id.clone()]);
    }
    if !write.is_dry_run() && !outcome.replayed {
        collector.generate_records([id]);
    }
}

impl CallContext<'_> {
    /// Notes records that the call used.
    pub(crate) fn note_records<'r>(&self, records: impl IntoIterator<Item = &'r Record>) {
        if self.collector().is_some() {
            self.note_ids(records.into_iter().map(Record::id));
        }
    }

    /// Notes records that the call used, by their ids.
    pub(crate) fn note_ids(&self, ids: impl IntoIterator<Item = String>) {
        let Some(collector) = self.collector() else {
            return;
        };
        let ids: Vec<String> = ids.into_iter().collect();
        for id in &ids {
            // A stream's name has no colon.
            if let Some((connection, rest)) = id.split_once('/')
                && let Some((stream, _)) = rest.split_once(':')
            {
                collector.use_stream(connection, stream);
            }
        }
        collector.use_records(ids);
    }

    /// Notes a stream that the call read, without its records.
    pub(crate) fn note_stream(&self, connection_id: &str, stream: &str) {
        if let Some(collector) = self.collector() {
            collector.use_stream(connection_id, stream);
        }
    }

    /// Counts rows of the answer.
    pub(crate) fn note_rows(&self, rows: usize) {
        if let Some(collector) = self.collector() {
            collector.add_rows(rows);
        }
    }
}
