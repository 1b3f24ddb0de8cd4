//! Matches URIs against RFC 6570 templates.
//!
//! Supports the part of RFC 6570 that can be matched without guessing: literals, `{name}` (one path
//! segment), `{+name}` (anything up to a query), and a closing `{?a,b}` (optional query
//! parameters). Matching is linear in the URI, because a template has at most one `{+name}`. If
//! the path of a URI matches and its query does not, the caller is told what is wrong with its
//! query.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{RpcError, error::excerpt};

/// A template this crate cannot match.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    /// A brace without its partner.
    #[error("uri template `{template}` has an unclosed brace")]
    Unclosed {
        /// The template.
        template: String,
    },
    /// An expression outside the supported part of RFC 6570.
    #[error("uri template `{template}`: expression `{{{expression}}}` is not supported")]
    Unsupported {
        /// The template.
        template: String,
        /// The expression, without braces.
        expression: String,
    },
    /// Two adjacent variables, or a second `{+name}`.
    #[error("uri template `{template}` is ambiguous at `{{{expression}}}`")]
    Ambiguous {
        /// The template.
        template: String,
        /// The expression, without braces.
        expression: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// One segment: no `/`, `?` or `#`.
    Segment(String),
    /// Anything but `?` and `#`.
    Rest(String),
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    path: Vec<Part>,
    query: Option<Vec<String>>,
}

impl UriTemplate {
    pub(crate) fn parse(template: &str) -> Result<Self, TemplateError> {
        let mut parser = Parser {
            template,
            parsed: Self {
                path: Vec::new(),
                query: None,
            },
        };
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            parser.literal(literal)?;
            let (expression, after) =
                after
                    .split_once('}')
                    .ok_or_else(|| TemplateError::Unclosed {
                        template: template.to_owned(),
                    })?;
            parser.expression(expression)?;
            rest = after;
        }
        parser.literal(rest)?;
        Ok(parser.parsed)
    }

    /// The variables for which the template expands to `uri`; `None` if the path does not match.
    pub(crate) fn matches(&self, uri: &str) -> Option<Result<Variables, RpcError>> {
        let (path, query) = match (&self.query, uri.split_once('?')) {
            (Some(names), Some((path, query))) => (path, Some((names, query))),
            _ => (uri, None),
        };
        let mut variables = Variables::new();
        match_parts(&self.path, path, &mut variables)?;
        let parameters = query.map_or(Ok(()), |(names, query)| {
            match_query(names, query, &mut variables)
        });
        Some(parameters.map(|()| variables))
    }
}

/// Values by the name of their variable, percent-decoded.
pub(crate) type Variables = BTreeMap<String, String>;

fn match_query(names: &[String], query: &str, variables: &mut Variables) -> Result<(), RpcError> {
    if query.contains('#') {
        let message = "a resource has no fragment; write `#` in a value as `%23`";
        return Err(bad_query("#", "fragment", message.to_owned(), names));
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let refuse = |reason, what: &str| {
            let message = format!("query parameter `{}` {what}", excerpt(name));
            bad_query(name, reason, message, names)
        };
        if !names.iter().any(|known| known == name) {
            return Err(refuse(
                "unknown_parameter",
                "is not supported by this resource",
            ));
        }
        let value = percent_decode(value).ok_or_else(|| {
            refuse(
                "malformed_escape",
                "has a `%` escape that is not valid UTF-8",
            )
        })?;
        if variables.insert(name.to_owned(), value).is_some() {
            return Err(refuse("duplicate_parameter", "is given twice"));
        }
    }
    Ok(())
}

fn bad_query(name: &str, reason: &str, message: String, allowed: &[String]) -> RpcError {
    RpcError::invalid_params(message)
        .with_data(json!({ "field": excerpt(name), "reason": reason, "allowed": allowed }))
}

struct Parser<'t> {
    template: &'t str,
    parsed: UriTemplate,
}

impl Parser<'_> {
    fn literal(&mut self, text: &str) -> Result<(), TemplateError> {
        if text.is_empty() {
            return Ok(());
        }
        if text.contains('}') {
            return Err(TemplateError::Unclosed {
                template: self.template.to_owned(),
            });
        }
        if self.parsed.query.is_some() {
            return Err(self.unsupported(text));
        }
        self.parsed.path.push(Part::Literal(text.to_owned()));
        Ok(())
    }

    fn expression(&mut self, expression: &str) -> Result<(), TemplateError> {
        if self.parsed.query.is_some() {
            return Err(self.unsupported(expression));
        }
        if let Some(names) = expression.strip_prefix('?') {
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            if !names.iter().all(|name| is_name(name)) {
                return Err(self.unsupported(expression));
            }
            self.parsed.query = Some(names);
            return Ok(());
        }
        let part = match expression.strip_prefix('+') {
            Some(name) if is_name(name) => Part::Rest(name.to_owned()),
            None if is_name(expression) => Part::Segment(expression.to_owned()),
            _ => return Err(self.unsupported(expression)),
        };
        let after_variable = matches!(
            self.parsed.path.last(),
            Some(Part::Segment(_) | Part::Rest(_))
        );
        let second_rest = matches!(part, Part::Rest(_))
            && self
                .parsed
                .path
                .iter()
                .any(|part| matches!(part, Part::Rest(_)));
        if after_variable || second_rest {
            return Err(TemplateError::Ambiguous {
                template: self.template.to_owned(),
                expression: expression.to_owned(),
            });
        }
        self.parsed.path.push(part);
        Ok(())
    }

    fn unsupported(&self, expression: &str) -> TemplateError {
        TemplateError::Unsupported {
            template: self.template.to_owned(),
            expression: expression.to_owned(),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn match_parts(parts: &[Part], text: &str, variables: &mut Variables) -> Option<()> {
    let Some((part, rest)) = parts.split_first() else {
        return text.is_empty().then_some(());
    };
    match part {
        Part::Literal(literal) => {
            match_parts(rest, text.strip_prefix(literal.as_str())?, variables)
        }
        Part::Segment(name) => {
            let end = text.find(['/', '?', '#']).unwrap_or(text.len());
            let (segment, after) = text.split_at_checked(end)?;
            // A literal may follow inside the segment (`{id}.json`): the last occurrence ends it.
            let (value, after) = match rest.first() {
                Some(Part::Literal(literal)) if !after.starts_with(literal.as_str()) => {
                    let at = segment.rfind(literal.as_str())?;
                    text.split_at_checked(at)?
                }
                _ => (segment, after),
            };
            bind(name, value, variables)?;
            match_parts(rest, after, variables)
        }
        Part::Rest(name) => {
            let end = text.find(['?', '#']).unwrap_or(text.len());
            let (value, after) = match rest.first() {
                Some(Part::Literal(literal)) => {
                    let at = text.get(..end)?.rfind(literal.as_str())?;
                    text.split_at_checked(at)?
                }
                _ => text.split_at_checked(end)?,
            };
            bind(name, value, variables)?;
            match_parts(rest, after, variables)
        }
    }
}

fn bind(name: &str, value: &str, variables: &mut Variables) -> Option<()> {
    if value.is_empty() {
        return None;
    }
    variables.insert(name.to_owned(), percent_decode(value)?);
    Some(())
}

/// Decodes `%XX`; `None` when an escape is broken or the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let found = UriTemplate::parse(template).unwrap().matches(uri);
        let found = found.map(|it| it.unwrap());
        let expected = expected.map(|pairs| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect()
        });
        assert_eq!(found, expected, "{template} against {uri}");
    }

    #[test]
    fn a_variable_is_one_segment_and_never_empty() {
        check("a://{x}/end", "a://one/end", Some(&[("x", "one")]));
        check("a://{x}/end", "a://one/two/end", None);
        check("a://{x}/end", "a:///end", None);
        check("a://{x}.json", "a://b.c.json", Some(&[("x", "b.c")]));
        check("a://{x}/{y}", "a://1/2", Some(&[("x", "1"), ("y", "2")]));
        check("a://{x}", "a://1?y=2", None);
    }

    #[test]
    fn a_plus_variable_crosses_segments() {
        check(
            "file:///{+path}",
            "file:///a/b/c.txt",
            Some(&[("path", "a/b/c.txt")]),
        );
        check("f://{+p}/raw", "f://a/b/raw", Some(&[("p", "a/b")]));
    }

    #[test]
    fn query_parameters_are_optional_known_and_single() {
        check("k://t{?where,limit}", "k://t", Some(&[]));
        check(
            "k://t{?where,limit}",
            "k://t?limit=5",
            Some(&[("limit", "5")]),
        );
        check(
            "k://t{?where,limit}",
            "k://t?where=a=b",
            Some(&[("where", "a=b")]),
        );
        for (uri, field, reason) in [
            ("k://t?other=5", "other", "unknown_parameter"),
            ("k://t?limit=5&limit=6", "limit", "duplicate_parameter"),
            ("k://t?where=a=%f", "where", "malformed_escape"),
            ("k://t?where=a=%ff", "where", "malformed_escape"),
            ("k://t?where=a=b#c", "#", "fragment"),
        ] {
            let template = UriTemplate::parse("k://t{?where,limit}").unwrap();
            let error = template.matches(uri).unwrap().unwrap_err();
            let data = json!({ "field": field, "reason": reason, "allowed": ["where", "limit"] });
            assert_eq!((error.code, error.data), (-32602, Some(data)), "{uri}");
        }
        check("k://t{?where,limit}", "k://other?limit=5&limit=6", None);
    }

    #[test]
    fn escapes_are_decoded_or_the_uri_does_not_match() {
        check("a://{x}", "a://caf%C3%A9", Some(&[("x", "café")]));
        check("a://{x}", "a://%zz", None);
        check("a://{x}", "a://%ff", None);
    }

    #[test]
    fn templates_that_cannot_be_matched_are_refused() {
        for template in [
            "a://{x",
            "a://x}",
            "a://{x}{y}",
            "a://{/x}",
            "a://{+a}/{+b}",
            "a{?x}b",
        ] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}
