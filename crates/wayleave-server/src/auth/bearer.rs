//! The credential of an HTTP request: RFC 6750, section 2.1 only.

use http::{header, request::Parts};

use super::Refusal;

/// Query parameters under which clients put tokens into URLs.
const TOKEN_PARAMETERS: [&str; 6] = [
    "access_token",
    "token",
    "bearer",
    "authorization",
    "api_key",
    "apikey",
];

/// The token of a request, if it carries one.
pub(super) fn token(request: &Parts) -> Result<Option<&str>, Refusal> {
    if request.uri.query().is_some_and(names_a_token) {
        return Err(Refusal::TokenInUrl);
    }
    let mut given = request.headers.get_all(header::AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => one,
        _ => return Err(Refusal::Malformed),
    };
    let value = value.to_str().map_err(|_| Refusal::Malformed)?;
    // HTTP trims the trailing space of a `Bearer ` without a token.
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let token = token.trim_matches(' ');
    if !scheme.eq_ignore_ascii_case("bearer") {
        Err(Refusal::Malformed)
    } else if is_b64token(token) {
        Ok(Some(token))
    } else {
        Err(Refusal::from_malformed(token))
    }
}

fn names_a_token(query: &str) -> bool {
    let mut names = query.split('&').map(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        name.to_ascii_lowercase()
    });
    names.any(|name| TOKEN_PARAMETERS.contains(&name.as_str()))
}

/// `b64token` of RFC 6750.
fn is_b64token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(address: &str, headers: &[&str], expected: Result<Option<&str>, Refusal>) {
        let mut request = Request::get(address);
        for value in headers {
            request = request.header("authorization", *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(token(&parts), expected, "{address} {headers:?}");
    }

    #[test]
    fn a_token_is_taken_from_one_authorization_header_and_nowhere_else() {
        check("/mcp", &[], Ok(None));
        check("/mcp", &["Bearer abc"], Ok(Some("abc")));
        check(
            "/mcp",
            &["bearer a.b-c_d~e+f/g=="],
            Ok(Some("a.b-c_d~e+f/g==")),
        );
        for malformed in [
            "abc",
            "Bearer a b",
            "Bearer a,b",
            "Bearer ==",
            "Basic YTpi",
            "Bearer\tabc",
        ] {
            check("/mcp", &[malformed], Err(Refusal::Malformed));
        }
        for empty in ["Bearer", "Bearer ", "bearer   "] {
            check("/mcp", &[empty], Err(Refusal::EmptyToken));
        }
        for unexpanded in ["Bearer ${TOKEN}", "Bearer $TOKEN", "Bearer <token>"] {
            check("/mcp", &[unexpanded], Err(Refusal::UnexpandedToken));
        }
        check("/mcp", &["Bearer a", "Bearer a"], Err(Refusal::Malformed));
        check("/mcp?access_token=a", &[], Err(Refusal::TokenInUrl));
        check(
            "/mcp?x=1&Access_Token=a",
            &["Bearer a"],
            Err(Refusal::TokenInUrl),
        );
        check("/mcp?tokens=a", &[], Ok(None));
    }
}
