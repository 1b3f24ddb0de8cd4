//! `aggregate`: groups and their measures.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::AggregateRequest;

use crate::call_context::CallContext;
use crate::reply::Reply;
use crate::table::Table;

/// Answers an aggregate.
pub(crate) async fn answer(
    call: &CallContext<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = AggregateRequest::read(arguments)?;
    let plan = AggregatePlan::new(&call.view, &request, call.seal)?;
    let read = call.rows(plan.groups(), call.max_bytes * 4).await?;
    let (groups, mut more) = plan.answer(&read.rows);
    more |= read.cut;
    // Room for what is said around the table.
    let mut table = Table::new(
        plan.header()
            .iter()
            .map(|name| (name.clone(), name.clone())),
        call.max_bytes.saturating_sub(512),
    );
    for group in groups {
        if !table.push(group, &[]) {
            more = true;
            break;
        }
    }
    if table.len() == 0 && more {
        return Err(Refusal::new(
            Code::ResultTooLarge,
            "one group alone exceeds a result; group by another field",
        )
        .param("group_by")
        .retry_with("group_by"));
    }
    Ok(written(&plan, table, more))
}

fn written(plan: &AggregatePlan, table: Table, more: bool) -> Reply {
    let shown = table.len();
    let (rows, data) = table.finish(None);
    let groups = if shown == 1 { "group" } else { "groups" };
    let mut text = format!(
        "{shown} {groups} of {}, connection_id {}\n{rows}",
        plan.stream(),
        plan.connection_id()
    );
    if more {
        text.push_str("more groups than shown: filter, sort, or raise limit up to 100\n");
    }
    let meta = json!({
        "stream": plan.stream(),
        "connection_id": plan.connection_id(),
        "connector_key": plan.connector_key(),
        "more": more,
    });
    Reply::row_set(text, &data, &meta)
}
