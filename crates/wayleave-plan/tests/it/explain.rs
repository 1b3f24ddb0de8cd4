//! Prints a plan as text, for golden files.

use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Comparison, GroupKey, OrderBy, Predicate, Read};
use wayleave_plan::value::Value;

pub(crate) fn explain(plan: &AuthorizedPlan) -> String {
    let target = plan.target();
    let mut lines = vec![format!(
        "  from     {} ({} {}), table {}",
        target.connection_id, target.kind, target.source, target.table
    )];
    match plan.read() {
        Read::Rows(rows) => {
            let columns: Vec<_> = rows.columns.iter().map(|c| c.name.as_str()).collect();
            lines.push(format!("  columns  {}", columns.join(", ")));
            lines.push(format!("  where    {}", predicate(&rows.predicate)));
            lines.push(format!("  order    {}", order(&rows.order)));
            if let Some(after) = &rows.after {
                lines.push(format!("  after    {}", values(after)));
            }
            if let Some(each) = &rows.each {
                let by: Vec<_> = each.by.iter().map(|c| c.name.as_str()).collect();
                lines.push(format!("  each     {} of {}", each.limit, by.join(", ")));
            }
            lines.push(format!("  limit    {}", rows.limit));
        }
        Read::Groups(groups) => {
            let by = groups.by.iter().map(|key| match key {
                GroupKey::Column(column) => column.name.clone(),
                GroupKey::Period {
                    column,
                    granularity,
                    time_zone,
                } => format!("{granularity:?} of {} in {time_zone}", column.name),
            });
            let measures = groups.measures.iter().map(|measure| match &measure.column {
                None => measure.op.to_string(),
                Some(column) => format!("{}({})", measure.op, column.name),
            });
            let names: Vec<_> = by.chain(measures).collect();
            let order: Vec<_> = groups
                .order
                .iter()
                .map(|o| {
                    format!(
                        "{}{}",
                        names[o.index],
                        if o.descending { " desc" } else { "" }
                    )
                })
                .collect();
            lines.push(format!(
                "  by       {}",
                names[..groups.by.len()].join(", ")
            ));
            lines.push(format!(
                "  measure  {}",
                names[groups.by.len()..].join(", ")
            ));
            lines.push(format!("  where    {}", predicate(&groups.predicate)));
            lines.push(format!("  order    {}", order.join(", ")));
            lines.push(format!("  limit    {}", groups.limit));
        }
        Read::Count {
            predicate: wanted,
            exact,
        } => {
            lines.push(format!(
                "  count    {}",
                if *exact { "exact" } else { "estimated" }
            ));
            lines.push(format!("  where    {}", predicate(wanted)));
        }
    }
    trimmed(&lines.join("\n"))
}

/// Removes trailing spaces, and ends every line with a newline.
pub(crate) fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn order(order: &[OrderBy]) -> String {
    let keys = order.iter().map(|by| {
        let descending = if by.descending { " desc" } else { "" };
        let nulls = if by.nullable { " nulls last" } else { "" };
        format!("{}{descending}{nulls}", by.column.name)
    });
    keys.collect::<Vec<_>>().join(", ")
}

fn value(value: &Value) -> String {
    value.to_json().to_string()
}

fn values(values: &[Value]) -> String {
    values.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn predicate(wanted: &Predicate) -> String {
    let joined = |parts: &[Predicate], word: &str| {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| match part {
                Predicate::And(_) | Predicate::Or(_) => format!("({})", predicate(part)),
                _ => predicate(part),
            })
            .collect();
        parts.join(&format!(" {word} "))
    };
    match wanted {
        Predicate::True => "true".to_owned(),
        Predicate::False => "false".to_owned(),
        Predicate::And(parts) => joined(parts, "and"),
        Predicate::Or(parts) => joined(parts, "or"),
        Predicate::Granted(granted) => format!("granted ({})", predicate(granted)),
        Predicate::Compare {
            column,
            comparison,
            value: with,
        } => {
            let sign = match comparison {
                Comparison::Eq => "=",
                Comparison::Ne => "<>",
                Comparison::Gt => ">",
                Comparison::Gte => ">=",
                Comparison::Lt => "<",
                Comparison::Lte => "<=",
            };
            format!("{} {sign} {}", column.name, value(with))
        }
        Predicate::In {
            column,
            values: with,
            negated,
        } => {
            let not = if *negated { "not " } else { "" };
            format!("{} {not}in ({})", column.name, values(with))
        }
        Predicate::Like {
            column,
            text,
            prefix,
        } => {
            let verb = if *prefix { "starts with" } else { "contains" };
            format!("{} {verb} {text:?}", column.name)
        }
        Predicate::IsNull { column, negated } => {
            format!(
                "{} is {}null",
                column.name,
                if *negated { "not " } else { "" }
            )
        }
    }
}
