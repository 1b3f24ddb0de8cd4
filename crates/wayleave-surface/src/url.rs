//! The address of a record: `wayleave://kg/<Type>/<id>`.

/// The address of the record with this id. The id is one segment of the path, so its own `/` and
/// whatever else means something in an address is percent-encoded, its `%` included.
pub(crate) fn record(type_name: &str, id: &str) -> String {
    let mut url = format!("wayleave://kg/{type_name}/");
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':' | b',') {
            url.push(char::from(byte));
        } else {
            say!(url, "%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_id_is_one_segment_whatever_it_holds() {
        assert_eq!(
            super::record("Person", "crm-eu/people:a%2Fb,é?#"),
            "wayleave://kg/Person/crm-eu%2Fpeople:a%252Fb,%C3%A9%3F%23"
        );
    }
}
