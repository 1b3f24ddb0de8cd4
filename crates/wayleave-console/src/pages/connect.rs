//! Instructions for connecting each client.

use maud::html;

use crate::{
    page::{NavSection, copy, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    sentences::count,
    visible_text::VisibleText,
};

/// The clients by their command-line names, with the step that follows.
const CLIENTS: [(&str, &str, &str); 6] = [
    (
        "claude-code",
        "Claude Code",
        "Start Claude Code again; `/mcp` shows the server.",
    ),
    (
        "claude-desktop",
        "Claude Desktop",
        "Started from a dock it does not see your shell’s variables: put the DSN into a file only you \
         may read and let its variable with `_FILE` name it, before you run this.",
    ),
    (
        "cursor",
        "Cursor",
        "Start Cursor again where the variables are set.",
    ),
    (
        "vscode",
        "VS Code",
        "Open the command palette, MCP: List Servers, and start it.",
    ),
    (
        "codex",
        "Codex",
        "Start Codex again; `/mcp` shows the server.",
    ),
    (
        "gemini",
        "Gemini CLI",
        "Start Gemini CLI again; `/mcp` shows the server.",
    ),
];

pub(super) fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let url = visit.console.backend.agents_url();
    let listening = visit.console.backend.listening();
    let body = html! {
        h1 { "Connect a client" }
        p.by { "One way for each. Without " code { "--write" } " it only shows what it would change; with \
                it, what was there is kept beside it. No setting ever holds a DSN or a token." }
        div.split.wide.gap {
            div { section aria-labelledby="w" {
                h2 id="w" { "Which client" }
                @for (at, (name, title, then)) in CLIENTS.iter().enumerate() {
                    details.item name="client" open[at == 0] {
                        summary { (title) }
                        div {
                            p { "Where the project is, in a terminal:" }
                            div.gap { (copy(&format!("c-{name}"), &format!("wayleave client install {name} --write"))) }
                            p.gap { (crate::sentences::sentence(then)) }
                        }
                    }
                }
                details.item name="client" {
                    summary { "Another one, or another machine" }
                    div {
                        @match &url {
                            Some(url) => {
                                p { "Any MCP client takes this address. From another machine it needs a token: "
                                    a href="/grants/new" { "make a grant" } " and issue one." }
                                div.gap { (copy("c-any", url)) }
                            },
                            None => {
                                p { "Serve over HTTP, then give any MCP client the address it prints:" }
                                div.gap { (copy("c-any", "wayleave serve")) }
                            },
                        }
                    }
                }
            } }
            aside aria-labelledby="i" { div.box {
                h2 id="i" { "Is it there?" }
                @if listening > 0 {
                    p { (state("ok", &count(listening, "client"))) " listening for changes here." }
                } @else {
                    p { (state("off", "none")) " is listening here yet. A client that runs the server itself, \
                         over stdio, is not seen from here." }
                }
                @if let Some(url) = &url { p.small { "Agents: " code { (VisibleText(url)) } } }
            } }
        }
        (on_command_line("wayleave client print CLIENT"))
    };
    PageAnswer::page(NavSection::Connect, "Connect a client", body)
}
