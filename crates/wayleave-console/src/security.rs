//! Which requests are accepted, and the security headers of every answer.
//!
//! `Host` is checked on every route, `Origin` and `Sec-Fetch-Site` on every form. A page of another
//! site or port can neither read an answer nor send a form.

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

/// The headers of every answer.
pub(crate) const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src \
         'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers would then send `Origin: null` with our own forms.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// Names of this machine.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The host and port of a request, if they are this console's own.
pub(crate) fn own_host(uri: &Uri, headers: &HeaderMap, port: u16) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, _) => uri.authority()?.as_str(),
        (Some(_), Some(_)) => return None,
    };
    if uri.authority().is_some_and(|it| it.as_str() != named) {
        return None;
    }
    let named = named.to_ascii_lowercase();
    let (host, given) = named.rsplit_once(':')?;
    (HOSTS.contains(&host) && given.parse() == Ok(port)).then_some(named)
}

/// Whether a form comes from a page of this console.
pub(crate) fn is_own_form(headers: &HeaderMap, host: &str) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_ours = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value.eq_ignore_ascii_case(&format!("http://{host}"))
    };
    let origin = match (origins.next(), origins.next()) {
        (Some(origin), None) => is_ours(origin),
        (None, _) => false,
        (Some(_), Some(_)) => return false,
    };
    let site = headers.get("sec-fetch-site");
    let is_same_site = site.is_none_or(|it| it == "same-origin");
    origin && is_same_site
}

/// The value of one cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(';'))
        .filter_map(|it| it.trim().split_once('='));
    let found = pairs.find(|(key, _)| *key == name)?;
    // Another party set a second cookie of this name: trust neither.
    match pairs.find(|(key, _)| *key == name) {
        None => Some(found.1),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_names_of_this_machine_with_this_port_are_answered_to() {
        let uri = Uri::from_static("/inbox");
        for (host, is_ours) in [
            ("127.0.0.1:7412", true),
            ("localhost:7412", true),
            ("[::1]:7412", true),
            ("127.0.0.1:7411", false),
            ("127.0.0.1", false),
            ("evil.example:7412", false),
            ("127.0.0.1.evil.example:7412", false),
            ("localhost:7412@evil.example", false),
        ] {
            let host = headers(&[("host", host)]);
            assert_eq!(own_host(&uri, &host, 7412).is_some(), is_ours, "{host:?}");
        }
        assert_eq!(own_host(&uri, &HeaderMap::new(), 7412), None);
    }

    #[test]
    fn a_form_of_another_page_is_not_ours() {
        let host = "127.0.0.1:7412";
        for (given, is_ours) in [
            (vec![("origin", "http://127.0.0.1:7412")], true),
            (vec![("origin", "http://127.0.0.1:9999")], false),
            (vec![("origin", "https://127.0.0.1:7412")], false),
            (vec![("origin", "null")], false),
            (vec![], false),
            (
                vec![
                    ("origin", "http://127.0.0.1:7412"),
                    ("sec-fetch-site", "same-site"),
                ],
                false,
            ),
        ] {
            assert_eq!(is_own_form(&headers(&given), host), is_ours, "{given:?}");
        }
    }

    #[test]
    fn a_cookie_that_is_there_twice_counts_for_nothing() {
        let one = headers(&[("cookie", "a=1; b=2")]);
        assert_eq!(cookie(&one, "b"), Some("2"));
        let two = headers(&[("cookie", "b=1; a=1; b=2")]);
        assert_eq!(cookie(&two, "b"), None);
    }
}
