//! Requests to the client for input, by the means of its era.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wayleave_mcp::{Answers, Context, Era, InputRequired, RpcError};

/// A question that only the client can answer.
pub(crate) struct Question {
    pub(crate) key: &'static str,
    method: &'static str,
    capability: &'static str,
    /// A member that every valid answer has.
    mark: &'static str,
    params: Value,
}

impl Question {
    /// An elicitation form for the person.
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

    /// A sampling request to the client's model.
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

    /// A request for the client's roots.
    pub(crate) fn roots(key: &'static str) -> Self {
        Self {
            key,
            method: "roots/list",
            capability: "roots",
            mark: "roots",
            params: json!({}),
        }
    }

    /// Whether `context`'s client supports this question.
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

/// All answers, by the key of their question.
#[derive(Default)]
pub(crate) struct CollectedAnswers(BTreeMap<&'static str, Value>);

impl CollectedAnswers {
    /// One answer; null if its question was not asked.
    pub(crate) fn answer(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    /// A string within an answer; empty if there is none.
    pub(crate) fn text(&self, key: &str, pointer: &str) -> &str {
        let found = self.answer(key).pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default()
    }
}

/// The outcome of asking.
pub(crate) enum InputOutcome {
    /// The client answered.
    Answered(CollectedAnswers),
    /// The client must answer and call again.
    Again(InputRequired),
}

/// Asks every question: in a session one after the other, in a stateless request all at once, to be
/// answered by its retry. Missing or invalid answers are requested again; unsolicited answers are
/// ignored.
pub(crate) async fn ask(
    context: &Context,
    answers: &Answers,
    questions: &[Question],
) -> Result<InputOutcome, RpcError> {
    for question in questions {
        context.require(question.capability)?;
    }
    let mut given = CollectedAnswers::default();
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

/// Requests the answers to all questions.
fn required(questions: &[Question]) -> InputRequired {
    questions
        .iter()
        .fold(InputRequired::new(), |required, question| {
            required.ask(question.key, question.method, question.params.clone())
        })
}
