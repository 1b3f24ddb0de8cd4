//! Text forms of times that sort as the times do.
//!
//! Every text of one form has its digits at the same offsets and the same ending, so that bytes
//! compare as times do, and each time has exactly one text.

use std::cmp::Ordering;
use std::fmt::Write as _;

use wayleave_plan::value::Value;

/// How a program writes a time: the separator between day and clock, the number of digits after the
/// seconds, and the UTC suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    between: char,
    digits: u32,
    zone: &'static str,
}

impl Form {
    /// The form whose pattern appears in a piece of SQL.
    pub(crate) fn from_pattern(sql: &str) -> Option<Self> {
        let mut all = ['T', ' '].into_iter().flat_map(|between| {
            [0, 3, 6].into_iter().flat_map(move |digits| {
                ["", "Z", "+00:00"].into_iter().map(move |zone| Self {
                    between,
                    digits,
                    zone,
                })
            })
        });
        all.find(|form| sql.contains(&format!("'{}'", form.pattern())))
    }

    /// The `GLOB` pattern that matches the form.
    pub(crate) fn pattern(self) -> String {
        const TWO: &str = "[0-9][0-9]";
        let mut pattern = format!(
            "{TWO}{TWO}-{TWO}-{TWO}{}{TWO}:[0-5][0-9]:[0-5][0-9]",
            self.between
        );
        if self.digits > 0 {
            pattern.push('.');
        }
        for _ in 0..self.digits {
            pattern.push_str("[0-9]");
        }
        pattern.push_str(self.zone);
        pattern
    }

    /// Writes a time in this form, cut to its digits, and tells how the result compares with the
    /// time; `None` where the year does not have four digits.
    pub(super) fn write(self, micros: i64) -> Option<(String, Ordering)> {
        let unit = 10_i64.pow(6_u32.saturating_sub(self.digits));
        let cut = micros.div_euclid(unit).checked_mul(unit)?;
        let written = Value::Datetime(cut).to_text()?;
        let (day, clock) = written.split_once('T')?;
        // Years before 0001 have a sign, years after 9999 more digits.
        if day.len() != 10 || day.starts_with(['-', '+']) {
            return None;
        }
        let clock = clock.strip_suffix('Z')?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut text = format!("{day}{}{clock}", self.between);
        if self.digits > 0 {
            let width = usize::try_from(self.digits).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(text, ".{fraction:0<width$}");
        }
        text.push_str(self.zone);
        let side = if cut == micros {
            Ordering::Equal
        } else {
            Ordering::Less
        };
        Some((text, side))
    }
}

#[cfg(test)]
mod tests {
    use wayleave_plan::value::datetime_from_text;

    use super::*;

    const PATTERN: &str = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]";

    #[test]
    fn a_form_is_found_by_its_pattern_and_written_in_it() {
        let form = Form::from_pattern(&format!("a NOT GLOB '{PATTERN}'")).unwrap();
        assert_eq!(form.pattern(), PATTERN);
        let micros = datetime_from_text("2024-05-06T07:08:09.5Z").unwrap();
        let whole = Some(("2024-05-06 07:08:09.500".to_owned(), Ordering::Equal));
        assert_eq!(form.write(micros), whole);
        let cut = Some(("2024-05-06 07:08:09.500".to_owned(), Ordering::Less));
        assert_eq!(form.write(micros + 1), cut);
        assert_eq!(form.write(i64::MAX), None);
        assert_eq!(form.write(i64::MIN), None);
        assert_eq!(Form::from_pattern("a NOT GLOB '????'"), None);
    }

    #[test]
    fn the_pattern_in_the_reference_is_one_of_ours() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/stores.md"
        );
        let reference = std::fs::read_to_string(path).unwrap();
        let form = Form::from_pattern(&reference).unwrap();
        let micros = datetime_from_text("2024-05-06T07:08:09.123Z").unwrap();
        let (text, _) = form.write(micros).unwrap();
        assert!(
            reference.contains(&format!("the form of `{text}`")),
            "{text}"
        );
    }
}
