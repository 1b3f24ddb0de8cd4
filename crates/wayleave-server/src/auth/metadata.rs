//! How clients find a credential: RFC 9728 metadata, and the challenges that point to it.

use bytes::Bytes;
use http::{header, request::Parts};
use serde_json::json;
use wayleave_model::grant::{Scope, Scopes};

use wayleave_project::Settings;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The public description of this server for clients without a credential.
pub(super) struct Metadata {
    name: String,
    /// The origin of the URL that clients use, if the settings name one.
    origin: Option<String>,
    scheme: &'static str,
    path: String,
    issuer: Option<String>,
    scopes: Scopes,
}

impl Metadata {
    /// The metadata of a server at `path`.
    pub(super) fn new(settings: &Settings, path: &str) -> Self {
        let url = settings.url.as_ref();
        Self {
            name: settings.name.clone(),
            origin: url.map(|url| url.origin().ascii_serialization()),
            scheme: if settings.tls.is_some() {
                "https"
            } else {
                "http"
            },
            path: url.map_or(path, |url| url.path()).to_owned(),
            issuer: settings.jwt.as_ref().map(|issuer| issuer.issuer.clone()),
            scopes: settings.scopes,
        }
    }

    /// The requested document, if it is this one: under the server's path, or at the root.
    pub(super) fn document(&self, request: &Parts) -> Option<Bytes> {
        let rest = request.uri.path().strip_prefix(WELL_KNOWN)?;
        if !rest.is_empty() && rest != self.path {
            return None;
        }
        let mut document = json!({
            "resource": format!("{}{}", self.origin_of(request), self.path),
            "resource_name": self.name,
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.scopes,
        });
        if let (Some(issuer), Some(document)) = (&self.issuer, document.as_object_mut()) {
            document.insert("authorization_servers".to_owned(), json!([issuer]));
        }
        Some(document.to_string().into())
    }

    /// The value of a `WWW-Authenticate` header.
    pub(super) fn challenge(
        &self,
        request: &Parts,
        error: Option<(&str, &str)>,
        scopes: Scopes,
    ) -> String {
        let mut parts = Vec::new();
        if let Some((code, description)) = error {
            parts.push(format!("error=\"{code}\""));
            parts.push(format!("error_description=\"{description}\""));
        }
        let scopes: Vec<_> = scopes.iter().map(Scope::as_str).collect();
        parts.push(format!("scope=\"{}\"", scopes.join(" ")));
        let origin = self.origin_of(request);
        let path = if self.path == "/" { "" } else { &self.path };
        parts.push(format!("resource_metadata=\"{origin}{WELL_KNOWN}{path}\""));
        format!("Bearer {}", parts.join(", "))
    }

    /// The origin clients use: the configured one, or that of this request, whose host was checked
    /// before.
    fn origin_of(&self, request: &Parts) -> String {
        if let Some(origin) = &self.origin {
            return origin.clone();
        }
        let header = request.headers.get(header::HOST);
        let host = match request.uri.authority() {
            Some(authority) => authority.as_str(),
            None => header
                .and_then(|host| host.to_str().ok())
                .unwrap_or("localhost"),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let host = if host.bytes().all(plain) {
            host
        } else {
            "localhost"
        };
        format!("{}://{host}", self.scheme)
    }
}
