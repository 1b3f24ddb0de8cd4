//! From a request to a response: authenticate, dispatch to a page, set the headers.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use maud::{Markup, html};
use wayleave_activity::LogStamp;
use wayleave_ledger::State;
use wayleave_project::{
    Explanation,
    inbox::{InboxError, ProposalInbox},
};

use crate::{
    assets,
    console::Console,
    form::FormFields,
    page::{ConsolePage, Frame, NavSection, copy},
    pages,
    security::{self, HEADERS},
    session::Session,
};

/// Maximum size of a form, in bytes.
pub const MAX_FORM_BYTES: usize = 64 * 1024;

/// The answer of a page function.
pub(crate) enum PageAnswer {
    /// A page.
    Page(StatusCode, ConsolePage),
    /// A redirect, followed with GET.
    SeeOther(String),
    /// Plain text.
    Text(String),
}

impl PageAnswer {
    /// A page with status 200.
    pub(crate) fn page(section: NavSection, title: impl Into<String>, body: Markup) -> Self {
        let title = title.into();
        Self::Page(
            StatusCode::OK,
            ConsolePage {
                title,
                section,
                body,
            },
        )
    }

    /// The same page with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        match self {
            Self::Page(_, page) => Self::Page(status, page),
            other => other,
        }
    }

    /// A page that says what was not found.
    pub(crate) fn missing(section: NavSection, what: &Markup) -> Self {
        let body = html! { div.state { h1 { "Page not found" } p { (what) } } };
        Self::page(section, "Page not found", body).with_status(StatusCode::NOT_FOUND)
    }

    /// A page that says why something cannot be shown.
    pub(crate) fn failed(section: NavSection, why: &Explanation) -> Self {
        let body = html! {
            h1 { "That cannot be shown" }
            (crate::page::failed("Nothing was changed.", why))
        };
        let answer = Self::page(section, "That cannot be shown", body);
        answer.with_status(StatusCode::SERVICE_UNAVAILABLE)
    }
}

/// A request of a signed-in person.
pub(crate) struct SignedInRequest<'a> {
    pub(crate) console: &'a Console,
    pub(crate) session: &'a Session,
    pub(crate) state: &'a State,
    /// The fields of the query string.
    pub(crate) query: FormFields,
    /// The fields of the form; empty for a GET.
    pub(crate) form: FormFields,
}

impl Console {
    /// Answers a request. The caller limits its body to the size of a form.
    pub async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let mut response = self.answer(&parts, body).await;
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let is_kept = headers.contains_key(header::CACHE_CONTROL);
        if !is_kept {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }

    /// Whether a request comes from a signed-in person, for the event stream.
    pub fn is_signed_in(&self, parts: &Parts) -> bool {
        let is_ours = security::own_host(&parts.uri, &parts.headers, self.port).is_some();
        is_ours && self.session(parts).is_some()
    }

    /// Number of proposals that wait for a decision.
    pub fn waiting(&self) -> Result<usize, InboxError> {
        ProposalInbox::new(&self.project).waiting(self.now())
    }

    /// Number of calls recorded since `since_ms`, if the record has changed since `known`.
    pub async fn calls_since(
        &self,
        since_ms: u64,
        known: &LogStamp,
    ) -> Result<Option<(LogStamp, usize)>, Explanation> {
        self.backend.calls_since(since_ms, known).await
    }

    fn session(&self, parts: &Parts) -> Option<Session> {
        let cookie = self.cookie();
        let value = security::cookie(&parts.headers, &cookie)?;
        self.sessions.get(value, self.now())
    }

    async fn answer(&self, parts: &Parts, body: Bytes) -> Response<Bytes> {
        let Some(host) = security::own_host(&parts.uri, &parts.headers, self.port) else {
            return plain(
                StatusCode::MISDIRECTED_REQUEST,
                "this console does not answer to that host",
            );
        };
        let path = parts.uri.path();
        if parts.method == Method::GET
            && let Some(asset) = asset(path)
        {
            return asset;
        }
        let is_post = parts.method == Method::POST;
        if !is_post && parts.method != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST");
        }
        if body.len() > MAX_FORM_BYTES {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "that form is too large");
        }
        let session = self.session(parts);
        let form = FormFields::parse(if is_post { &body } else { &[] });
        if is_post && !security::is_own_form(&parts.headers, &host) {
            return self
                .refused("That form does not come from this console.")
                .await;
        }
        let query = FormFields::parse(parts.uri.query().unwrap_or_default().as_bytes());
        if path == "/login" {
            return if is_post {
                self.log_in(&form).await
            } else {
                self.frame(None, pages::login::show(self, &query)).await
            };
        }
        let Some(session) = session else {
            return self.refused("You are signed out.").await;
        };
        if is_post && !session.fits(form.get("csrf")) {
            return self.refused("That form is not of this session.").await;
        }
        if is_post && path == "/logout" {
            return self.log_out(parts).await;
        }
        let state = match self.project.governance().ledger().state().await {
            Ok(state) => state,
            Err(error) => {
                let answer = PageAnswer::failed(NavSection::Outside, &error.into());
                return self.frame(Some(&session), answer).await;
            }
        };
        let visit = SignedInRequest {
            console: self,
            session: &session,
            state: &state,
            query,
            form,
        };
        let answer = pages::route(&visit, path, is_post).await;
        self.frame(Some(&session), answer).await
    }

    async fn log_in(&self, form: &FormFields) -> Response<Bytes> {
        let now = self.now();
        if self.sessions.has_too_many_failures(now) {
            return plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too many failed sign-ins; wait a minute",
            );
        }
        let Some(link) = self.links.redeem(form.get("code"), now) else {
            self.sessions.fail(now);
            return self.frame(None, pages::login::used()).await;
        };
        // Always a new cookie, whatever the browser sent.
        let Some(cookie) = self.sessions.begin(&link.who, now) else {
            return plain(StatusCode::INTERNAL_SERVER_ERROR, "no random numbers");
        };
        tracing::info!(who = link.who, "signed in to the console");
        let cookie = format!(
            "{}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200",
            self.cookie()
        );
        see_other("/inbox", Some(&cookie))
    }

    async fn log_out(&self, parts: &Parts) -> Response<Bytes> {
        let name = self.cookie();
        if let Some(value) = security::cookie(&parts.headers, &name) {
            self.sessions.end(value);
        }
        let cookie = format!("{name}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
        let mut response = self.frame(None, pages::login::signed_out()).await;
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Refuses a request without a session, or with a form of another session. Changes nothing.
    async fn refused(&self, why: &str) -> Response<Bytes> {
        let body = html! {
            div.narrow { div.state {
                h1 { (why) }
                p { "Nothing you sent was done. A session ends after 12 hours, or when the console \
                     stops. Get a link where the project is:" }
                (copy("link", "wayleave console link"))
            } }
        };
        let answer = PageAnswer::page(NavSection::Outside, "Signed out", body);
        self.frame(None, answer.with_status(StatusCode::FORBIDDEN))
            .await
    }

    async fn frame(&self, session: Option<&Session>, answer: PageAnswer) -> Response<Bytes> {
        let (status, page) = match answer {
            PageAnswer::Page(status, page) => (status, page),
            PageAnswer::SeeOther(to) => return see_other(&to, None),
            PageAnswer::Text(text) => return content("text/plain; charset=utf-8", text),
        };
        let ledger = match session {
            Some(_) => self.head().await,
            None => None,
        };
        let frame = Frame {
            project: &self.project.settings().name,
            session,
            waiting: match session {
                Some(_) => self.waiting().ok(),
                None => Some(0),
            },
            ledger,
            port: self.port,
            now: self.now(),
        };
        let mut response = content("text/html; charset=utf-8", frame.render(&page));
        *response.status_mut() = status;
        response
    }

    /// The number of entries in the ledger, and its head, shortened.
    async fn head(&self) -> Option<(u64, String)> {
        let ledger = self.project.governance().ledger();
        let last = ledger.epoch().await.ok()?;
        let entries = ledger.entries(last.saturating_sub(1), 1).await.ok()?;
        let hash = entries.first()?.hash.to_string();
        let short: String = hash.chars().take(12).collect();
        Some((last, format!("{last}:{short}")))
    }
}

fn asset(path: &str) -> Option<Response<Bytes>> {
    if path == "/favicon.ico" {
        let mut response = content("image/svg+xml", FAVICON.to_owned());
        keep(&mut response);
        return Some(response);
    }
    let asset = [&*assets::CSS, &*assets::JS]
        .into_iter()
        .find(|it| it.path == path)?;
    let mut response = content(asset.content_type, asset.text.to_owned());
    keep(&mut response);
    Some(response)
}

const FAVICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 24\" fill=\"none\" \
                       stroke=\"#17634a\" stroke-width=\"2\"><path d=\"M3 4v16M21 4v16\"/><path \
                       d=\"M3 12h18\" stroke-dasharray=\"4 3\"/></svg>";

fn keep(response: &mut Response<Bytes>) {
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, forever);
}

fn content(content_type: &'static str, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Bytes> {
    let mut response = content("text/plain; charset=utf-8", format!("{text}\n"));
    *response.status_mut() = status;
    response
}

fn see_other(to: &str, cookie: Option<&str>) -> Response<Bytes> {
    let mut response = plain(StatusCode::SEE_OTHER, "see the other page");
    let headers = response.headers_mut();
    if let Ok(to) = HeaderValue::from_str(to) {
        headers.insert(header::LOCATION, to);
    }
    if let Some(cookie) = cookie.and_then(|it| HeaderValue::from_str(it).ok()) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    response
}
