//! The frame of every page, and the parts that pages share.

use maud::{DOCTYPE, Markup, html};
use wayleave_ledger::{Millis, rfc3339};
use wayleave_project::Explanation;

use crate::{assets, sentences::sentence, session::Session, visible_text::VisibleText};

/// The navigation entry a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavSection {
    Inbox,
    Datasets,
    Grants,
    Activity,
    Try,
    Connect,
    Outside,
}

const SECTIONS: [(NavSection, &str, &str); 6] = [
    (NavSection::Inbox, "/inbox", "Inbox"),
    (NavSection::Datasets, "/datasets", "Datasets"),
    (NavSection::Grants, "/grants", "Grants"),
    (NavSection::Activity, "/activity", "Activity"),
    (NavSection::Try, "/try", "Try"),
    (NavSection::Connect, "/connect", "Connect"),
];

/// The data in the frame around a page.
pub(crate) struct Frame<'a> {
    pub(crate) project: &'a str,
    pub(crate) session: Option<&'a Session>,
    /// Number of waiting proposals; `None` if the inbox cannot be read.
    pub(crate) waiting: Option<usize>,
    pub(crate) ledger: Option<(u64, String)>,
    pub(crate) port: u16,
    pub(crate) now: Millis,
}

/// A page.
pub(crate) struct ConsolePage {
    pub(crate) title: String,
    pub(crate) section: NavSection,
    pub(crate) body: Markup,
}

impl Frame<'_> {
    /// The whole document.
    pub(crate) fn render(&self, page: &ConsolePage) -> String {
        let events = self.session.map(|_| match page.section {
            // Counts calls from the time the page was rendered.
            NavSection::Activity => format!("/events?calls={}", self.now),
            _ => "/events".to_owned(),
        });
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (VisibleText(&page.title)) " · Wayleave" }
                    link rel="stylesheet" href=(assets::CSS.path);
                    script src=(assets::JS.path) defer {}
                }
                body data-events=[events] {
                    a.skip href="#main" { "Skip to the content" }
                    (self.head(page.section))
                    main id="main" tabindex="-1" {
                        p.news id="news" role="status" {}
                        (page.body)
                    }
                    (self.foot())
                }
            }
        }
        .into_string()
    }

    fn head(&self, current: NavSection) -> Markup {
        html! {
            header.head {
                a.brand href="/inbox" {
                    svg viewBox="0 0 24 24" aria-hidden="true" {
                        path d="M3 4v16M21 4v16" {}
                        path d="M3 12h18" stroke-dasharray="4 3" {}
                    }
                    "Wayleave"
                }
                @if let Some(session) = self.session {
                    nav aria-label="Console" { ul {
                        @for (section, path, name) in SECTIONS {
                            li { a href=(path) aria-current=[(section == current).then_some("page")] {
                                (name)
                                @if section == NavSection::Inbox { (waiting(self.waiting)) }
                            } }
                        }
                    } }
                    div.who {
                        span.proj { code { (VisibleText(self.project)) } }
                        span.at { "as of " (clock(self.now)) " UTC" }
                        span { (VisibleText(&session.who)) }
                        form method="post" action="/logout" {
                            (csrf(session))
                            button.plain { "Sign out" }
                        }
                    }
                }
            }
        }
    }

    fn foot(&self) -> Markup {
        html! {
            footer.foot {
                span { "Wayleave " (env!("CARGO_PKG_VERSION")) }
                @if let Some((entries, head)) = &self.ledger {
                    span { "Ledger: " a href="/decisions" { (entries) " entries" } }
                    span { "Head " code { (head) } }
                }
                span { "Console on " code { "127.0.0.1:" (self.port) } ", this machine only" }
            }
        }
    }
}

/// The number of waiting proposals, beside the link to the inbox.
fn waiting(many: Option<usize>) -> Markup {
    html! { @match many {
        Some(0) => {},
        Some(many) => { span.count { (many) } span.vh { " waiting" } },
        None => { span.count { "?" } span.vh { " waiting: the inbox cannot be read" } },
    } }
}

/// The hidden field with the session's CSRF token.
pub(crate) fn csrf(session: &Session) -> Markup {
    html! { input type="hidden" name="csrf" value=(session.csrf); }
}

/// A state as a mark and a word, so that colour is not needed to read it.
pub(crate) fn state(kind: &str, word: &str) -> Markup {
    html! { span class={ "st " (kind) } { (VisibleText(word)) } }
}

/// A time, to the minute: `16 Nov 2026, 07:02 UTC`.
pub(crate) fn moment(at: Millis) -> Markup {
    let exact = rfc3339(at - at.rem_euclid(1000));
    html! { time datetime=(exact) data-ago { (day(at)) ", " (clock(at)) " UTC" } }
}

/// `16 Nov 2026`.
pub(crate) fn day(at: Millis) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let text = rfc3339(at);
    let date = text.split('T').next().unwrap_or_default();
    let mut parts = date.rsplitn(3, '-');
    let (day, month, year) = (parts.next(), parts.next(), parts.next());
    let month = month.and_then(|it| it.parse::<usize>().ok());
    let month = month.and_then(|it| MONTHS.get(it.wrapping_sub(1)));
    match (day, month, year) {
        (Some(day), Some(month), Some(year)) => {
            format!("{} {month} {year}", day.trim_start_matches('0'))
        }
        _ => date.to_owned(),
    }
}

/// `07:02`.
pub(crate) fn clock(at: Millis) -> String {
    let text = rfc3339(at);
    let time = text.split('T').nth(1).unwrap_or_default();
    time.chars().take(5).collect()
}

/// A text with a button that copies all of it.
pub(crate) fn copy(id: &str, text: &str) -> Markup {
    html! {
        div.copy {
            code id=(id) { (VisibleText(text)) }
            button type="button" data-copy=(id) hidden { "Copy" }
        }
    }
}

/// The equivalent command on the command line.
pub(crate) fn on_command_line(command: &str) -> Markup {
    html! { p.cli { "The same on the command line: " code { (VisibleText(command)) } } }
}

/// The error box shown after a form failed.
pub(crate) fn failed(what: &str, why: &Explanation) -> Markup {
    html! {
        div.box.bad role="alert" {
            p { strong { (what) " " } (sentence(&sentence_of(&why.message))) }
            @for cause in &why.causes { p.small { (sentence(cause)) } }
            @if let Some(hint) = &why.hint { p { (sentence(&sentence_of(hint))) } }
        }
    }
}

/// The error box of a record that cannot be read; nothing if it was read.
pub(crate) fn read_failure<T>(what: &str, read: &Result<T, Explanation>) -> Markup {
    html! { @if let Err(why) = read { (failed(what, why)) } }
}

/// A message as a sentence: with a capital and a full stop.
pub(crate) fn sentence_of(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    let mut text = format!("{}{}", first.unwrap_or_default(), chars.as_str());
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

/// A table whose rows become cards on narrow screens.
pub(crate) struct CardTable<'a> {
    pub(crate) caption: &'a str,
    pub(crate) heads: &'a [&'a str],
    pub(crate) rows: Vec<Vec<Markup>>,
}

impl CardTable<'_> {
    pub(crate) fn render(&self) -> Markup {
        html! {
            table.cards role="table" {
                caption.vh { (self.caption) }
                thead role="rowgroup" { tr role="row" {
                    @for head in self.heads {
                        th role="columnheader" scope="col" {
                            @if head.is_empty() { span.vh { "Action" } } @else { (head) }
                        }
                    }
                } }
                tbody role="rowgroup" {
                    @for row in &self.rows { tr role="row" {
                        @for (at, cell) in row.iter().enumerate() {
                            @let label = self.heads.get(at).copied().filter(|it| !it.is_empty());
                            @if at == 0 {
                                th role="rowheader" scope="row" { (cell) }
                            } @else {
                                td role="cell" data-l=[label] { div { (cell) } }
                            }
                        }
                    } }
                }
            }
        }
    }
}
