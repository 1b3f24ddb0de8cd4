//! Binary encoding of log records: compact, because there is one per call and they are kept for
//! years.
//!
//! Integers are little-endian base-128, texts are prefixed with their length, and each id in a list
//! omits the prefix it shares with the one before. Decoding rejects unknown tags, invalid UTF-8 and
//! trailing bytes.

use uuid::Uuid;

use crate::activity::{
    Activity, ActivityId, Agent, ArgumentRecord, CallOutcome, CallTransport, GrantUse, RecordList,
    SealedArguments, TraceParent,
};

/// A record that this program cannot decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown or malformed record")]
pub struct RecordDecodeError;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogRecord {
    Activity(Box<Activity>),
    /// Retention dropped segments.
    Retention(DroppedSegments),
    /// When opened, the log was shorter than its head states.
    Gap {
        /// Number of missing records.
        missing: u64,
    },
}

/// The segments that retention dropped, and the chain state after them: proof that the chain may
/// begin with the next segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DroppedSegments {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The number of the last dropped record.
    pub(crate) last_record: u64,
    /// The state of the chain after that record.
    pub(crate) state: [u8; 32],
}

const ACTIVITY: u8 = 1;
const RETENTION: u8 = 2;
const GAP: u8 = 3;

/// Methods encoded as their index plus one; others are encoded as text.
const METHODS: [&str; 12] = [
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "initialize",
    "resources/subscribe",
    "subscriptions/listen",
    "server/discover",
];

/// Encodes the record of a call.
pub(crate) fn encode_activity(activity: &Activity) -> Vec<u8> {
    let mut out = Encoder(Vec::with_capacity(384));
    out.0.push(ACTIVITY);
    out.activity(activity);
    out.0
}

impl LogRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder(Vec::new());
        match self {
            Self::Activity(activity) => return encode_activity(activity),
            Self::Retention(dropped) => {
                out.0.push(RETENTION);
                out.number(dropped.first);
                out.number(dropped.last);
                out.number(dropped.last_record);
                out.0.extend_from_slice(&dropped.state);
            }
            Self::Gap { missing } => {
                out.0.push(GAP);
                out.number(*missing);
            }
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RecordDecodeError> {
        let mut input = Decoder(bytes);
        let record = match input.byte()? {
            ACTIVITY => Self::Activity(Box::new(input.activity()?)),
            RETENTION => Self::Retention(DroppedSegments {
                first: input.number()?,
                last: input.number()?,
                last_record: input.number()?,
                state: input.array()?,
            }),
            GAP => Self::Gap {
                missing: input.number()?,
            },
            _ => return Err(RecordDecodeError),
        };
        if input.0.is_empty() {
            Ok(record)
        } else {
            Err(RecordDecodeError)
        }
    }
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(low_bits(number) | 0x80);
            number >>= 7;
        }
        self.0.push(low_bits(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.number(text.len() as u64 + 1);
                self.0.extend_from_slice(text.as_bytes());
            }
            None => self.number(0),
        }
    }

    fn optional_array(&mut self, bytes: Option<&[u8]>) {
        self.0.push(u8::from(bytes.is_some()));
        self.0.extend_from_slice(bytes.unwrap_or_default());
    }

    /// Encodes texts, each without the prefix it shares with the one before.
    fn texts(&mut self, texts: &[String]) {
        self.number(texts.len() as u64);
        let mut before: &str = "";
        for text in texts {
            let shared = before.bytes().zip(text.bytes());
            let mut shared = shared.take_while(|(one, other)| one == other).count();
            while !text.is_char_boundary(shared) {
                shared -= 1;
            }
            self.number(shared as u64);
            self.text(text.get(shared..).unwrap_or_default());
            before = text;
        }
    }

    fn records(&mut self, records: &RecordList) {
        self.texts(&records.ids);
        self.number(records.total);
        self.optional_array(records.digest.as_ref().map(<[u8; 32]>::as_slice));
    }

    fn activity(&mut self, activity: &Activity) {
        self.0.extend_from_slice(activity.id.as_bytes());
        self.number(activity.micros);
        let transport = activity.transport;
        (self.0).push(u8::from(transport.http) | u8::from(transport.session) << 1);
        let method = METHODS.iter().position(|known| *known == activity.method);
        if let Some(at) = method {
            self.number(at as u64 + 1);
        } else {
            self.number(0);
            self.text(&activity.method);
        }
        self.optional_text(activity.target.as_deref());
        self.text(&activity.agent.token);
        self.optional_text(activity.agent.client.as_deref());
        self.optional_text(activity.agent.version.as_deref());
        self.number(activity.grants.len() as u64);
        for grant in &activity.grants {
            self.text(&grant.grant);
            self.text(&grant.connection);
            self.text(&grant.dataset);
            self.0.extend_from_slice(&grant.mapping);
        }
        self.texts(&activity.streams);
        self.0.extend_from_slice(&activity.arguments.digest);
        self.text(&activity.arguments.shape);
        match &activity.arguments.sealed {
            Some(sealed) => {
                self.number(u64::from(sealed.key) + 1);
                self.bytes(&sealed.bytes);
            }
            None => self.number(0),
        }
        self.records(&activity.used);
        self.records(&activity.generated);
        self.number(activity.rows);
        self.number(activity.bytes);
        self.optional_array(activity.answer.as_ref().map(<[u8; 16]>::as_slice));
        self.outcome(&activity.outcome);
        self.0.push(u8::from(activity.trace.is_some()));
        if let Some(trace) = &activity.trace {
            self.0.extend_from_slice(&trace.trace);
            self.0.extend_from_slice(&trace.span);
        }
        self.number(activity.suppressed);
    }

    fn outcome(&mut self, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Completed => self.0.push(0),
            CallOutcome::ToolError { code } => {
                self.0.push(1);
                self.optional_text(code.as_deref());
            }
            CallOutcome::Failed { code } => {
                self.0.push(2);
                self.0.extend_from_slice(&code.to_le_bytes());
            }
            CallOutcome::Cancelled => self.0.push(3),
            CallOutcome::Abandoned => self.0.push(4),
            CallOutcome::Refused { reason } => {
                self.0.push(5);
                self.text(reason);
            }
        }
    }
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

struct Decoder<'b>(&'b [u8]);

impl<'b> Decoder<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], RecordDecodeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(RecordDecodeError)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, RecordDecodeError> {
        self.take(1)?.first().copied().ok_or(RecordDecodeError)
    }

    fn flag(&mut self) -> Result<bool, RecordDecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RecordDecodeError),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordDecodeError> {
        self.take(N)?.try_into().map_err(|_| RecordDecodeError)
    }

    fn optional_array<const N: usize>(&mut self) -> Result<Option<[u8; N]>, RecordDecodeError> {
        if self.flag()? {
            self.array().map(Some)
        } else {
            Ok(None)
        }
    }

    fn number(&mut self) -> Result<u64, RecordDecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(RecordDecodeError);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(RecordDecodeError)
    }

    fn size(&mut self) -> Result<usize, RecordDecodeError> {
        usize::try_from(self.number()?).map_err(|_| RecordDecodeError)
    }

    fn text_of(&mut self, length: usize) -> Result<String, RecordDecodeError> {
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| RecordDecodeError)
    }

    fn text(&mut self) -> Result<String, RecordDecodeError> {
        let length = self.size()?;
        self.text_of(length)
    }

    fn optional_text(&mut self) -> Result<Option<String>, RecordDecodeError> {
        match self.size()?.checked_sub(1) {
            Some(length) => self.text_of(length).map(Some),
            None => Ok(None),
        }
    }

    fn texts(&mut self) -> Result<Vec<String>, RecordDecodeError> {
        let count = self.size()?;
        let mut texts: Vec<String> = Vec::new();
        for _ in 0..count {
            let shared = self.size()?;
            let rest = self.text()?;
            let before = texts.last().map_or("", String::as_str);
            let prefix = before.get(..shared).ok_or(RecordDecodeError)?;
            texts.push([prefix, &rest].concat());
        }
        Ok(texts)
    }

    fn records(&mut self) -> Result<RecordList, RecordDecodeError> {
        Ok(RecordList {
            ids: self.texts()?,
            total: self.number()?,
            digest: self.optional_array()?,
        })
    }

    fn activity(&mut self) -> Result<Activity, RecordDecodeError> {
        let id = ActivityId(Uuid::from_bytes(self.array()?));
        let micros = self.number()?;
        let transport = self.byte()?;
        let transport = CallTransport {
            http: transport & 1 != 0,
            session: transport & 2 != 0,
        };
        let method = match self.size()?.checked_sub(1) {
            Some(at) => (*METHODS.get(at).ok_or(RecordDecodeError)?).to_owned(),
            None => self.text()?,
        };
        let target = self.optional_text()?;
        let agent = Agent {
            token: self.text()?,
            client: self.optional_text()?,
            version: self.optional_text()?,
        };
        let count = self.size()?;
        let mut grants = Vec::new();
        for _ in 0..count {
            grants.push(GrantUse {
                grant: self.text()?,
                connection: self.text()?,
                dataset: self.text()?,
                mapping: self.array()?,
            });
        }
        Ok(Activity {
            id,
            micros,
            transport,
            method,
            target,
            agent,
            grants,
            streams: self.texts()?,
            arguments: self.arguments()?,
            used: self.records()?,
            generated: self.records()?,
            rows: self.number()?,
            bytes: self.number()?,
            answer: self.optional_array()?,
            outcome: self.outcome()?,
            trace: self.trace()?,
            suppressed: self.number()?,
        })
    }

    fn arguments(&mut self) -> Result<ArgumentRecord, RecordDecodeError> {
        let digest = self.array()?;
        let shape = self.text()?;
        let sealed = match self.number()?.checked_sub(1) {
            Some(key) => {
                let length = self.number()?;
                let length = usize::try_from(length).map_err(|_| RecordDecodeError)?;
                Some(SealedArguments {
                    key: u32::try_from(key).map_err(|_| RecordDecodeError)?,
                    bytes: self.take(length)?.to_vec(),
                })
            }
            None => None,
        };
        Ok(ArgumentRecord {
            digest,
            shape,
            sealed,
        })
    }

    fn outcome(&mut self) -> Result<CallOutcome, RecordDecodeError> {
        Ok(match self.byte()? {
            0 => CallOutcome::Completed,
            1 => CallOutcome::ToolError {
                code: self.optional_text()?,
            },
            2 => CallOutcome::Failed {
                code: i32::from_le_bytes(self.array()?),
            },
            3 => CallOutcome::Cancelled,
            4 => CallOutcome::Abandoned,
            5 => CallOutcome::Refused {
                reason: self.text()?,
            },
            _ => return Err(RecordDecodeError),
        })
    }

    fn trace(&mut self) -> Result<Option<TraceParent>, RecordDecodeError> {
        if !self.flag()? {
            return Ok(None);
        }
        Ok(Some(TraceParent {
            trace: self.array()?,
            span: self.array()?,
        }))
    }
}
