//! `wayleave aggregate`: measures of a stream, as agents would get them.

use serde_json::{Map, Value, json};

use crate::read;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The stream.
    #[arg(value_name = "STREAM")]
    stream: String,
    /// What to measure: `count`, or an operation and a field, such as `sum:amount`. May be repeated.
    #[arg(long, value_name = "OP[:FIELD]", default_value = "count")]
    metric: Vec<String>,
    /// Group by these fields, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    by: Vec<String>,
    /// Group by a time: a field, a period and maybe a time zone, such as `paid_at:month:Europe/Paris`.
    #[arg(long, value_name = "FIELD:PERIOD[:ZONE]", value_parser = time)]
    by_time: Option<Value>,
    /// The connection, where several hold the stream.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Which records: a JSON object, such as `{"status": "open"}`.
    #[arg(long, value_name = "JSON", value_parser = read::filter)]
    filter: Option<Value>,
    /// Sort by a group field or a measure; `-sum_amount` from the largest down. May be repeated.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// At most so many groups, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// Parses `FIELD:PERIOD[:ZONE]`.
fn time(text: &str) -> Result<Value, String> {
    let mut parts = text.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(field), Some(period), zone) => {
            let zone = zone.unwrap_or("UTC");
            Ok(json!({ "field": field, "granularity": period, "time_zone": zone }))
        }
        _ => Err("a time to group by is a field and a period, such as `paid_at:month`".to_owned()),
    }
}

fn metric(text: &str) -> Value {
    match text.split_once(':') {
        Some((op, field)) => json!({ "op": op, "field": field }),
        None => json!({ "op": text }),
    }
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        let metrics: Vec<Value> = self.metric.iter().map(|it| metric(it)).collect();
        read::given([
            ("stream", Some(self.stream.into())),
            ("connection_id", self.connection.map(Into::into)),
            ("metrics", Some(metrics.into())),
            ("group_by", read::list(self.by)),
            ("group_by_time", self.by_time),
            ("filter", self.filter),
            ("sort", read::list(self.sort)),
            ("limit", self.limit.map(Into::into)),
        ])
    }
}
