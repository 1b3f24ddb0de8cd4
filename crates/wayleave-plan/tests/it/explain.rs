//! Prints a plan as text, for golden files.

use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{
    Column, ColumnOrigin, GroupKey, Groups, JoinedTable, OrderBy, Predicate, Read, TextMatch,
};
use wayleave_plan::value::Value;

pub(crate) fn explain(plan: &AuthorizedPlan) -> String {
    let target = plan.target();
    let mut lines = vec![format!(
        "  from     {} ({} {}), table {}",
        target.connection_id, target.kind, target.source, target.table
    )];
    lines.extend(
        plan.joins()
            .iter()
            .map(|it| format!("  join     {}", joined_table(it))),
    );
    match plan.read() {
        Read::Rows(rows) => {
            let columns: Vec<_> = rows.columns.iter().map(named).collect();
            lines.push(format!("  columns  {}", columns.join(", ")));
            lines.push(format!("  where    {}", predicate(&rows.predicate)));
            lines.push(format!("  order    {}", order(&rows.order)));
            if let Some(after) = &rows.after {
                lines.push(format!("  after    {}", values(after)));
            }
            if let Some(per_parent) = &rows.per_parent {
                let by: Vec<_> = per_parent.by.iter().map(named).collect();
                let by = by.join(", ");
                lines.push(format!("  each     {} of {by}", per_parent.limit));
            }
            lines.push(format!("  limit    {}", rows.limit));
        }
        Read::Groups(groups) => explain_groups(groups, &mut lines),
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

fn explain_groups(groups: &Groups, lines: &mut Vec<String>) {
    let by = groups.by.iter().map(|key| match key {
        GroupKey::Column(column) => named(column),
        GroupKey::Period {
            column,
            granularity,
            time_zone,
        } => format!("{granularity:?} of {} in {time_zone}", named(column)),
    });
    let aggregates = groups.aggregates.iter().map(|aggregate| {
        let of = aggregate.column.as_ref();
        let of = of.map_or_else(String::new, |column| format!("({})", named(column)));
        match &aggregate.filter {
            Predicate::True => format!("{}{of}", aggregate.op),
            filter => format!("{}{of} where {}", aggregate.op, predicate(filter)),
        }
    });
    let names: Vec<_> = by.chain(aggregates).collect();
    let of_group = |column: &Column| match &column.origin {
        ColumnOrigin::Group { index, .. } => names[*index].clone(),
        _ => named(column),
    };
    let order: Vec<_> = groups
        .order
        .iter()
        .map(|o| {
            let descending = if o.descending { " desc" } else { "" };
            format!("{}{descending}", of_group(&o.column))
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
    let computed = groups.columns.iter();
    let computed = computed.filter(|it| matches!(it.origin, ColumnOrigin::Computed { .. }));
    lines.extend(computed.map(|it| format!("  compute  {} = {}", it.label(), named(it))));
    lines.push(format!("  where    {}", predicate(&groups.predicate)));
    if groups.having != Predicate::True {
        lines.push(format!("  having   {}", predicate(&groups.having)));
    }
    lines.push(format!("  order    {}", order.join(", ")));
    if let Some(after) = &groups.after {
        lines.push(format!("  after    {}", values(after)));
    }
    lines.push(format!("  limit    {}", groups.limit));
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
        format!("{}{descending}{nulls}", named(&by.column))
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
            format!("{} {} {}", named(column), comparison.symbol(), value(with))
        }
        Predicate::CompareColumns {
            left,
            comparison,
            right,
        } => format!("{} {} {}", named(left), comparison.symbol(), named(right)),
        Predicate::Exists {
            related,
            joins,
            predicate: inner,
            negated,
        } => {
            let verb = if *negated { "none of" } else { "some of" };
            let joins = joins
                .iter()
                .map(|it| format!(", join {}", joined_table(it)));
            format!(
                "{verb} [{}{} where {}]",
                joined_table(related),
                joins.collect::<String>(),
                predicate(inner)
            )
        }
        Predicate::In {
            column,
            values: with,
            negated,
        } => {
            let not = if *negated { "not " } else { "" };
            format!("{} {not}in ({})", named(column), values(with))
        }
        Predicate::Like {
            column,
            text,
            place,
            fold,
        } => {
            let verb = match place {
                TextMatch::Whole => "is",
                TextMatch::Beginning => "starts with",
                TextMatch::Anywhere => "contains",
            };
            let fold = if *fold { " in any case" } else { "" };
            format!("{} {verb} {text:?}{fold}", named(column))
        }
        Predicate::IsNull { column, negated } => {
            format!(
                "{} is {}null",
                named(column),
                if *negated { "not " } else { "" }
            )
        }
    }
}

/// A column by name; columns of joined tables follow the number of their table.
fn named(column: &Column) -> String {
    match &column.origin {
        ColumnOrigin::Stored { table: 0, name } => name.clone(),
        ColumnOrigin::Stored { table, name } => format!("t{table}.{name}"),
        ColumnOrigin::Computed { formula, .. } => {
            let mut leaves = Vec::new();
            formula.for_each_leaf(&mut |leaf| leaves.push(named(leaf)));
            format!("{}({})", column.label(), leaves.join(", "))
        }
        ColumnOrigin::Group { label, .. } => label.clone(),
    }
}

fn joined_table(table: &JoinedTable) -> String {
    let on = table.on.iter();
    let on: Vec<_> = on
        .map(|(ours, theirs)| format!("{} = {}", named(ours), named(theirs)))
        .collect();
    let rows = match &table.rows {
        Predicate::True => String::new(),
        rows => format!(" of {}", predicate(rows)),
    };
    format!(
        "t{} {}{rows} on {}",
        table.table,
        table.name,
        on.join(" and ")
    )
}
