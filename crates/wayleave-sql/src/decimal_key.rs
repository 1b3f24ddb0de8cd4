//! Encodes decimals as bytes that sort as the decimals do, and decodes them.
//!
//! The first byte is the sign. For a number `0.ddd × 10^e` whose first digit is not zero, `e` and
//! the digits follow. For a negative number all these bytes are inverted, so that the greater
//! magnitude comes first, and a terminator is added that sorts after every digit.

const NEGATIVE: u8 = 0;
const ZERO: u8 = 1;
const POSITIVE: u8 = 2;
const END: u8 = 0xFF;
/// Added to an exponent so that it is never negative.
const BIAS: i32 = 0x8000;

/// The key of a canonical decimal.
pub(crate) fn encode(decimal: &str) -> Vec<u8> {
    let (negative, unsigned) = match decimal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, decimal),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = whole.trim_start_matches('0');
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return vec![ZERO];
    }
    let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX / 4);
    let leading = length(&all) - length(all.trim_start_matches('0'));
    let exponent = (length(whole) - leading + BIAS).clamp(0, 0xFFFF);
    let exponent = u16::try_from(exponent).unwrap_or(u16::MAX).to_be_bytes();
    let rest = exponent.into_iter().chain(digits.bytes());
    if negative {
        let turned = rest.map(|byte| !byte);
        std::iter::once(NEGATIVE)
            .chain(turned)
            .chain([END])
            .collect()
    } else {
        std::iter::once(POSITIVE).chain(rest).collect()
    }
}

/// The canonical decimal of a key.
pub(crate) fn decode(key: &[u8]) -> Option<String> {
    let (sign, rest) = key.split_first()?;
    let rest: Vec<u8> = match *sign {
        ZERO => return Some("0".to_owned()),
        POSITIVE => rest.to_vec(),
        NEGATIVE => rest
            .strip_suffix(&[END])?
            .iter()
            .map(|byte| !byte)
            .collect(),
        _ => return None,
    };
    let (exponent, digits) = rest.split_at_checked(2)?;
    let exponent = i32::from(u16::from_be_bytes(exponent.try_into().ok()?)) - BIAS;
    let digits = std::str::from_utf8(digits).ok()?;
    let length = i32::try_from(digits.len()).ok()?;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let unsigned = if exponent <= 0 {
        format!("0.{}{digits}", zeros(-exponent))
    } else if exponent >= length {
        format!("{digits}{}", zeros(exponent - length))
    } else {
        let (whole, fraction) = digits.split_at_checked(usize::try_from(exponent).ok()?)?;
        format!("{whole}.{fraction}")
    };
    let sign = if *sign == NEGATIVE { "-" } else { "" };
    Some(format!("{sign}{unsigned}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_decimals_do_and_read_back() {
        let ordered = [
            "-1000.5",
            "-1000",
            "-123.456",
            "-123.45",
            "-12",
            "-1",
            "-0.5",
            "-0.05",
            "-0.01",
            "0",
            "0.001",
            "0.01",
            "0.0101",
            "0.1",
            "0.12",
            "0.123",
            "1",
            "1.5",
            "9",
            "10",
            "12",
            "99.99",
            "100",
            "1000",
            "123456789012345678901234567890.5",
        ];
        for pair in ordered.windows(2) {
            assert!(encode(pair[0]) < encode(pair[1]), "{pair:?}");
        }
        for text in ordered {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
    }
}
