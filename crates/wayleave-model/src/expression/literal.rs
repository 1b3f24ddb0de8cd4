//! Date and time literals of expressions.

use crate::mapping::Datatype;

/// Whether a text is a valid date or datetime: `2026-01-31`, `2026-01-31T09:30:00Z`.
pub(super) fn is_time(datatype: Datatype, text: &str) -> bool {
    match datatype {
        Datatype::Date => is_date(text),
        Datatype::Datetime => {
            let time = |text: &str| {
                let parts: Vec<&str> = text.split(':').collect();
                let limits = [23, 59, 59];
                parts.len() == limits.len()
                    && parts.iter().zip(limits).all(|(part, most)| {
                        part.len() == 2 && number(part).is_some_and(|it| it <= most)
                    })
            };
            text.strip_suffix('Z')
                .and_then(|text| text.split_once('T'))
                .is_some_and(|(day, clock)| is_date(day) && time(clock))
        }
        _ => false,
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(year), number(month), number(day)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year >= 1 && (1..=days).contains(&day)
}
