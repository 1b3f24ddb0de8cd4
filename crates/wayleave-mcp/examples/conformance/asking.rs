//! Asking the client for something, by the means of its era.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wayleave_mcp::{Answers, Context, Era, InputRequired, RpcError};

/// Something only the client can answer.
pub(crate) struct Question {
    pub(crate) key: &'static str,
    method: &'static str,
    capability: &'static str,
    /// A member that every proper answer has.
    mark: &'static str,
    params: Value,
}

impl Question {
    /// A form for the person.
    pub(crate) fn form(key: &'static str, message: &str, schema: &Value) -> Self {
        Self {
            key,
            method: "elicitation/create",
            capability: "elicitation",
            mark: "action",
            params: json!({ "message": message, "requestedSchema": schema }),
        }
    }

    /// A form with one required field.
    pub(crate) fn field(key: &'static str, message: &str, field: &str, kind: &str) -> Self {
        let schema = json!({
            "type": "object",
            "properties": { field: { "type": kind } },
            "required": [field]
        });
        Self::form(key, message, &schema)
    }

    /// A prompt for the client's model.
    pub(crate) fn model(key: &'static str, prompt: &str, max_tokens: u32) -> Self {
        Self {
            key,
            method: "sampling/createMessage",
            capability: "sampling",
            mark: "content",
            params: json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
                "maxTokens": max_tokens
            }),
        }
    }

    /// The folders the client works in.
    pub(crate) fn roots(key: &'static str) -> Self {
        Self {
            key,
            method: "roots/list",
            capability: "roots",
            mark: "roots",
            params: json!({}),
        }
    }

    /// Whether `context`'s client can be asked this.
    pub(crate) fn can_be_asked(&self, context: &Context) -> bool {
        context.require(self.capability).is_ok()
    }

    fn answered_by<'a>(&self, answers: &'a Answers) -> Option<&'a Value> {
        answers
            .responses
            .get(self.key)
            .filter(|answer| answer.get(self.mark).is_some())
    }
}

/// All answers, by their question's key.
#[derive(Default)]
pub(crate) struct Given(BTreeMap<&'static str, Value>);

impl Given {
    /// One answer; null when it was not asked for.
    pub(crate) fn answer(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    /// A text within an answer; empty when it is not there.
    pub(crate) fn text(&self, key: &str, pointer: &str) -> &str {
        let found = self.answer(key).pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default()
    }
}

/// The outcome of asking.
pub(crate) enum InputOutcome {
    /// The client answered.
    Answered(Given),
    /// The client is to answer and call again.
    Again(InputRequired),
}

/// Asks every question: of a session one after the other, of a stateless request all at once, to be
/// answered when it is retried. Missing or invalid answers are asked for once more; answers nobody
/// asked for are ignored.
pub(crate) async fn ask(
    context: &Context,
    answers: &Answers,
    questions: &[Question],
) -> Result<InputOutcome, RpcError> {
    for question in questions {
        context.require(question.capability)?;
    }
    let mut given = Given::default();
    for question in questions {
        let answer = match context.era() {
            Era::Session => Some(
                context
                    .ask(question.method, question.params.clone())
                    .await?,
            ),
            Era::Stateless => question.answered_by(answers).cloned(),
        };
        match answer {
            Some(answer) => given.0.insert(question.key, answer),
            None => return Ok(InputOutcome::Again(required(questions))),
        };
    }
    Ok(InputOutcome::Answered(given))
}

/// A request for all answers.
fn required(questions: &[Question]) -> InputRequired {
    questions
        .iter()
        .fold(InputRequired::new(), |required, question| {
            required.ask(question.key, question.method, question.params.clone())
        })
}
