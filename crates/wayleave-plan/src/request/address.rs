//! The address of a record, `wayleave://kg/<Type>/<id>`.

use std::fmt::Write as _;

const PREFIX: &str = "wayleave://kg/";

/// Builds the address of the record with this id. The id is one path segment, so its `/` and other
/// reserved characters are percent-encoded, its `%` included.
pub fn record(type_name: &str, id: &str) -> String {
    let mut address = format!("{PREFIX}{type_name}/");
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':' | b',') {
            address.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

/// Extracts the id from a record's address; `None` if it is not one.
pub fn id(address: &str) -> Option<String> {
    let (_, segment) = address.strip_prefix(PREFIX)?.split_once('/')?;
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_leads_back_to_the_id() {
        for id in ["crm-eu/people:a%2Fb,é?#", "shop/orders:eu,7"] {
            assert_eq!(super::id(&super::record("T", id)).as_deref(), Some(id));
        }
        for odd in [
            "",
            "wayleave://kg/Person",
            "wayleave://kg/Person/%2",
            "https://kg/a/b",
        ] {
            assert_eq!(super::id(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_id_is_one_segment_whatever_it_holds() {
        assert_eq!(
            super::record("Person", "crm-eu/people:a%2Fb,é?#"),
            "wayleave://kg/Person/crm-eu%2Fpeople:a%252Fb,%C3%A9%3F%23"
        );
    }
}
