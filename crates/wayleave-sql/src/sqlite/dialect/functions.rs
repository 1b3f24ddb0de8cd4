//! The functions every session has. Their names are the contract between statements and sessions.

/// Any value as text: numbers as they are written, bytes as `\x` and hexadecimal digits.
pub(crate) const TEXT: &str = "wayleave_text";
/// Whether a value is of a datatype: `(value, word)`.
pub(crate) const FITS: &str = "wayleave_fits";
/// Whether a flag is 0; fails where it is 1.
pub(crate) const DECIDED: &str = "wayleave_decided";
/// A value as 0 or 1. This and the four after it fail for a malformed value, unless they are given
/// a replacement: `(value, instead)`.
pub(crate) const BOOLEAN: &str = "wayleave_boolean";
/// A value as a whole number; as text beyond what the store holds.
pub(crate) const INTEGER: &str = "wayleave_integer";
/// A value as a floating-point number.
pub(crate) const NUMBER: &str = "wayleave_number";
/// A text or number as microseconds since 1970-01-01T00:00:00Z.
pub(crate) const DATETIME: &str = "wayleave_datetime";
/// A text or number as bytes that sort as decimals do.
pub(crate) const DECIMAL: &str = "wayleave_decimal";
/// The preview of a long value, as [`Dialect::preview`] defines it. Each of SQLite's own functions
/// would read the whole value once more.
///
/// [`Dialect::preview`]: crate::compile::Dialect::preview
pub(crate) const PREVIEW: &str = "wayleave_preview";
/// The beginning of the period of a datetime: `(micros, granularity, zone)`.
pub(crate) const PERIOD: &str = "wayleave_period";
/// The beginning of the period of a date: `(text, granularity)`.
pub(crate) const DATE_PERIOD: &str = "wayleave_date_period";
/// The exact sum of integers and decimals, as text.
pub(crate) const SUM: &str = "wayleave_sum";
/// The mean of an exact sum and a count, as text.
pub(crate) const MEAN: &str = "wayleave_mean";
/// A floating-point number as answers round it.
pub(crate) const ROUNDED: &str = "wayleave_rounded";

/// A text folded to small letters by the rules of plans.
pub(crate) const FOLD: &str = "wayleave_fold";
/// A floating-point number, or NULL where it is not finite.
pub(crate) const FINITE: &str = "wayleave_finite";
/// The result of a program of exact arithmetic: `(program, argument, …)`. An integer if it fits
/// one, else text.
pub(crate) const COMPUTE: &str = "wayleave_compute";

/// All of them, for the authorizer.
pub(crate) const ALL: [&str; 17] = [
    TEXT,
    FITS,
    DECIDED,
    BOOLEAN,
    INTEGER,
    NUMBER,
    DATETIME,
    DECIMAL,
    PREVIEW,
    PERIOD,
    DATE_PERIOD,
    SUM,
    MEAN,
    ROUNDED,
    FOLD,
    FINITE,
    COMPUTE,
];
