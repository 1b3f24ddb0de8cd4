//! Labels of calendar periods: `2021`, `2021-Q1`, `2021-03`, `2021-W05`, `2021-03-04`.

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::Granularity;
use wayleave_plan::value::{Value, date_text};

/// The label of the period that begins at a value. Days, hours and minutes are their own labels.
pub(crate) fn label(granularity: Granularity, value: &Value) -> Value {
    let Value::Date(days) = value else {
        return value.clone();
    };
    match text(granularity, *days) {
        Some(label) => Value::Text(label.into()),
        None => value.clone(),
    }
}

fn text(granularity: Granularity, days: i32) -> Option<String> {
    let date = date_text(days);
    let (year, month) = year_and_month(&date)?;
    match granularity {
        Granularity::Year => Some(year.to_owned()),
        Granularity::Quarter => {
            let month: u8 = month.parse().ok()?;
            Some(format!("{year}-Q{}", month.saturating_sub(1) / 3 + 1))
        }
        Granularity::Month => Some(format!("{year}-{month}")),
        Granularity::Week => week(days),
        Granularity::Day | Granularity::Hour | Granularity::Minute => None,
    }
}

/// The label of the ISO week that begins on this Monday. Its year is that of its Thursday.
fn week(monday: i32) -> Option<String> {
    let thursday = monday.checked_add(3)?;
    let date = date_text(thursday);
    let (year, _) = year_and_month(&date)?;
    let first = Value::from_text(Datatype::Date, &format!("{year}-01-01"));
    let Ok(Value::Date(first)) = first else {
        return None;
    };
    Some(format!("{year}-W{:02}", (thursday - first) / 7 + 1))
}

fn year_and_month(date: &str) -> Option<(&str, &str)> {
    let (rest, _) = date.rsplit_once('-')?;
    rest.rsplit_once('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(granularity: Granularity, date: &str) -> String {
        let value = Value::from_text(Datatype::Date, date).unwrap();
        label(granularity, &value).to_text().unwrap()
    }

    #[test]
    fn a_period_is_labelled_by_its_granularity() {
        for (granularity, date, wanted) in [
            (Granularity::Year, "2021-01-01", "2021"),
            (Granularity::Quarter, "2021-01-01", "2021-Q1"),
            (Granularity::Quarter, "2021-10-01", "2021-Q4"),
            (Granularity::Month, "2021-03-01", "2021-03"),
            (Granularity::Week, "2021-02-01", "2021-W05"),
            (Granularity::Week, "2020-12-28", "2020-W53"),
            (Granularity::Week, "2024-12-30", "2025-W01"),
            (Granularity::Day, "2021-03-04", "2021-03-04"),
        ] {
            assert_eq!(labelled(granularity, date), wanted);
        }
        assert_eq!(label(Granularity::Year, &Value::Null), Value::Null);
        let noon = Value::Datetime(43_200_000_000);
        assert_eq!(label(Granularity::Hour, &noon), noon);
    }
}
