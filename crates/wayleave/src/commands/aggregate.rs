//! `wayleave aggregate`: measures of a stream, as agents would get them.

use serde_json::{Map, Value, json};

use crate::read;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The stream.
    #[arg(value_name = "STREAM")]
    stream: String,
    /// What to measure: `count`, an operation and a field (`sum:amount`), a measure of the mapping, or a JSON object with a filter and a name of its own, such as `{"op": "sum", "field": "amount", "filter": {"status": "paid"}, "as": "paid"}`. May be repeated.
    #[arg(long, value_name = "METRIC", default_value = "count", value_parser = metric)]
    metric: Vec<Value>,
    /// Group by these fields or relations to one, separated by commas. Here and below a field may be a path, such as `album.artist.Name`.
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
    /// Which groups: a JSON object over measures, such as `{"sum_amount": {"gt": 100}}`.
    #[arg(long, value_name = "JSON", value_parser = read::filter)]
    having: Option<Value>,
    /// Sort by a group field or a measure; `-sum_amount` for largest first. May be repeated.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Maximum number of groups, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Add the measures of all records together.
    #[arg(long)]
    totals: bool,
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

/// Parses a metric: a text as agents write it, or a JSON object.
fn metric(text: &str) -> Result<Value, String> {
    if !text.trim_start().starts_with('{') {
        return Ok(text.into());
    }
    serde_json::from_str(text).map_err(|_| {
        "a metric is a text such as `sum:amount`, or a JSON object such as \
         {\"op\": \"sum\", \"field\": \"amount\", \"as\": \"paid\"}"
            .to_owned()
    })
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        read::given([
            ("stream", Some(self.stream.into())),
            ("connection_id", self.connection.map(Into::into)),
            ("metrics", Some(self.metric.into())),
            ("group_by", read::list(self.by)),
            ("group_by_time", self.by_time),
            ("filter", self.filter),
            ("having", self.having),
            ("sort", read::list(self.sort)),
            ("limit", self.limit.map(Into::into)),
            ("cursor", self.cursor.map(Into::into)),
            ("totals", self.totals.then_some(true.into())),
        ])
    }
}
