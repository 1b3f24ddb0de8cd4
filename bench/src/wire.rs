//! The JSON-RPC messages of the load, and the check of every reply. It does not know sockets, pipes
//! or time.

use std::borrow::Cow;
use std::io::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::tools;

/// The protocol revision a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25: `initialize`, then requests in a session.
    Legacy,
    /// 2026-07-28: every request stands alone and carries its own metadata.
    Modern,
}

impl Era {
    /// The value of the `MCP-Protocol-Version` header.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    /// The word for this era in a report.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Requests of one kind, and how to check the replies.
pub(crate) trait Requests: std::fmt::Debug {
    /// The JSON-RPC method.
    fn method(&self) -> &'static str;

    /// The tool named by the requests, for the `Mcp-Name` header.
    fn name(&self) -> Option<&'static str>;

    /// Appends the request with this id.
    fn write(&self, out: &mut Vec<u8>, era: Era, id: u64) -> Result<()>;

    /// Checks the result in `message` and returns the id it answers.
    fn check(&mut self, message: &[u8]) -> Result<u64>;
}

/// The repeated request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// `tools/call` of the echo tool with a text that no other request carries.
    Echo,
    /// `tools/list` of a catalogue with this many tools.
    List {
        /// Number of tools in the reply.
        tools: usize,
    },
}

impl Ask {
    /// The JSON-RPC method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Echo => "tools/call",
            Self::List { .. } => "tools/list",
        }
    }

    /// The tool named by the request, for the `Mcp-Name` header.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Echo => Some(tools::ECHO),
            Self::List { .. } => None,
        }
    }
}

/// The `initialize` request of a legacy client, with id 0.
pub(crate) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"wayleave-bench","version":"1"}}}"#
);

/// The notification that a legacy client sends after the response to `initialize`.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

const MODERN_META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"wayleave-bench","version":"1"}}"#
);

/// Appends a `tools/call` with this id and these arguments, as JSON.
pub(crate) fn write_call(
    out: &mut Vec<u8>,
    (tool, arguments): (&str, &str),
    era: Era,
    id: u64,
) -> Result<()> {
    write!(
        out,
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}"#
    )?;
    if era == Era::Modern {
        out.push(b',');
        out.extend_from_slice(MODERN_META.as_bytes());
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Appends the request with this id.
pub(crate) fn write_request(out: &mut Vec<u8>, ask: Ask, era: Era, id: u64) -> Result<()> {
    let method = ask.method();
    write!(
        out,
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"#
    )?;
    if ask == Ask::Echo {
        let name = tools::ECHO;
        write!(out, r#""name":"{name}","arguments":{{"text":""#)?;
        write_text(out, id)?;
        out.extend_from_slice(br#""}"#);
    }
    if era == Era::Modern {
        if ask == Ask::Echo {
            out.push(b',');
        }
        out.extend_from_slice(MODERN_META.as_bytes());
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Writes the text of the echo with this id: 64 characters or a few more.
fn write_text(out: &mut Vec<u8>, id: u64) -> Result<()> {
    write!(
        out,
        "message {id:08} of a client that asks again when it is answered"
    )?;
    Ok(())
}

#[derive(Deserialize)]
struct Reply<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EchoResult<'a> {
    #[serde(borrow)]
    content: Vec<Text<'a>>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ListResult<'a> {
    #[serde(borrow)]
    tools: Vec<ToolEntry<'a>>,
}

#[derive(Deserialize)]
struct ToolEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Checks replies to one kind of request.
#[derive(Debug)]
pub(crate) struct Checker {
    ask: Ask,
    expected_text: Vec<u8>,
    list: Option<AroundId>,
}

/// A list reply that was checked in full, without its id. A later reply with the same bytes is
/// equally good, and a comparison takes a hundredth of the time of a parse.
#[derive(Debug)]
struct AroundId {
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl Checker {
    /// A checker of replies to `ask`.
    pub(crate) fn new(ask: Ask) -> Self {
        Self {
            ask,
            expected_text: Vec::new(),
            list: None,
        }
    }

    /// Checks the result in `message` and returns the id it answers.
    pub(crate) fn check(&mut self, message: &[u8]) -> Result<u64> {
        if let Some(id) = self.list.as_ref().and_then(|list| list.id_in(message)) {
            return Ok(id);
        }
        let (id, result) = result_of(message)?;
        match self.ask {
            Ask::Echo => self.check_echo(id, result.get())?,
            Ask::List { tools } => {
                check_list(tools, result.get())?;
                self.list = Some(AroundId::split(message, id)?);
            }
        }
        Ok(id)
    }

    fn check_echo(&mut self, id: u64, result: &str) -> Result<()> {
        let echo: EchoResult<'_> = serde_json::from_str(result).context("not an echo result")?;
        self.expected_text.clear();
        write_text(&mut self.expected_text, id)?;
        match echo.content.as_slice() {
            [only] if only.text.as_bytes() == self.expected_text => Ok(()),
            _ => bail!("request {id} was answered with another text: {result}"),
        }
    }
}

impl Requests for Checker {
    fn method(&self) -> &'static str {
        self.ask.method()
    }

    fn name(&self) -> Option<&'static str> {
        self.ask.name()
    }

    fn write(&self, out: &mut Vec<u8>, era: Era, id: u64) -> Result<()> {
        write_request(out, self.ask, era, id)
    }

    fn check(&mut self, message: &[u8]) -> Result<u64> {
        Checker::check(self, message)
    }
}

fn check_list(tools: usize, result: &str) -> Result<()> {
    let list: ListResult<'_> = serde_json::from_str(result).context("not a list of tools")?;
    let found = list.tools.len();
    ensure!(
        found == tools,
        "`tools/list` returned {found} tools instead of {tools}"
    );
    for (index, tool) in list.tools.iter().enumerate() {
        let expected = tools::name(index);
        ensure!(
            tool.name == expected,
            "tool {index} is `{}`, not `{expected}`",
            tool.name
        );
    }
    Ok(())
}

impl AroundId {
    fn split(message: &[u8], id: u64) -> Result<Self> {
        let key = format!(r#""id":{id}"#);
        let digits = id.to_string().len();
        let message = std::str::from_utf8(message)?;
        let (before, after) = message
            .split_once(&key)
            .context("a reply writes its id oddly")?;
        let before = [before, key.get(..key.len() - digits).unwrap_or_default()].concat();
        Ok(Self {
            before: before.into_bytes().into(),
            after: after.as_bytes().into(),
        })
    }

    fn id_in(&self, message: &[u8]) -> Option<u64> {
        let id = message
            .strip_prefix(&*self.before)?
            .strip_suffix(&*self.after)?;
        std::str::from_utf8(id).ok()?.parse().ok()
    }
}

/// The id and the result of a reply; an error reply is an error here too.
pub(crate) fn result_of(message: &[u8]) -> Result<(u64, &RawValue)> {
    let reply: Reply<'_> = serde_json::from_slice(message).with_context(|| {
        format!(
            "not a JSON-RPC reply: {:?}",
            String::from_utf8_lossy(message)
        )
    })?;
    match reply {
        Reply {
            id: Some(id),
            result: Some(result),
            error: None,
        } => Ok((id, result)),
        Reply {
            error: Some(error), ..
        } => bail!("the server answered with the error {error}"),
        Reply { .. } => bail!("a reply has no id or no result"),
    }
}

/// The last message of a server-sent event stream. A JSON-RPC message is one line; the priming
/// event before it has empty data.
pub(crate) fn last_event(stream: &[u8]) -> Result<&[u8]> {
    let mut rest = stream;
    while !rest.is_empty() {
        let start = memchr::memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
        let (before, line) = rest.split_at(start);
        let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
        if let Some(message) = data.filter(|data| !data.is_empty()) {
            return Ok(message);
        }
        rest = before.strip_suffix(b"\n").unwrap_or(before);
    }
    bail!("an event stream ended without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(ask: Ask, era: Era, id: u64) -> serde_json::Value {
        let mut out = Vec::new();
        write_request(&mut out, ask, era, id).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    fn echo_reply(id: u64, text_of: u64) -> Vec<u8> {
        let mut text = Vec::new();
        write_text(&mut text, text_of).unwrap();
        let text = String::from_utf8(text).unwrap();
        let content = serde_json::json!([{ "type": "text", "text": text }]);
        serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn requests_are_json_in_both_eras() {
        for ask in [Ask::Echo, Ask::List { tools: 3 }] {
            let legacy = request(ask, Era::Legacy, 7);
            assert_eq!(legacy["id"], 7);
            assert_eq!(legacy["method"], ask.method());
            assert_eq!(legacy["params"]["_meta"], serde_json::Value::Null);
            let modern = request(ask, Era::Modern, 7);
            let meta = &modern["params"]["_meta"];
            assert_eq!(
                meta["io.modelcontextprotocol/protocolVersion"],
                Era::Modern.version()
            );
        }
    }

    #[test]
    fn an_echo_of_the_same_request_is_accepted() {
        assert_eq!(Checker::new(Ask::Echo).check(&echo_reply(9, 9)).unwrap(), 9);
    }

    #[test]
    fn an_echo_of_another_request_is_refused() {
        assert!(Checker::new(Ask::Echo).check(&echo_reply(9, 8)).is_err());
    }

    #[test]
    fn an_error_reply_is_refused() {
        let reply = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#;
        assert!(Checker::new(Ask::Echo).check(reply).is_err());
    }

    #[test]
    fn a_list_that_misses_a_tool_or_changes_is_refused() {
        let reply = |id: u64, names: &[String]| {
            let tools: Vec<_> = names
                .iter()
                .map(|n| serde_json::json!({ "name": n }))
                .collect();
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": tools } })
                .to_string()
                .into_bytes()
        };
        let both = [tools::name(0), tools::name(1)];
        let swapped = [tools::name(1), tools::name(0)];
        let mut checker = Checker::new(Ask::List { tools: 2 });
        assert!(checker.check(&reply(1, &both[..1])).is_err());
        assert!(checker.check(&reply(1, &swapped)).is_err());
        assert_eq!(checker.check(&reply(5, &both)).unwrap(), 5);
        assert_eq!(checker.check(&reply(1234, &both)).unwrap(), 1234);
        assert!(checker.check(&reply(6, &swapped)).is_err());
        assert!(checker.check(&reply(7, &both[1..])).is_err());
    }

    #[test]
    fn the_message_of_an_event_stream_is_its_last_data_line_that_is_not_empty() {
        let stream = b"id: 0\nretry: 3000\ndata: \n\nid: 1\r\ndata: {\"id\":1}\r\n\r\n";
        assert_eq!(last_event(stream).unwrap(), b"{\"id\":1}");
        assert_eq!(last_event(b"data:{}").unwrap(), b"{}");
        assert!(last_event(b": keep-alive\n\n").is_err());
        assert!(last_event(b"").is_err());
    }
}
