//! Tools that need input from the client before they can answer, over one round or several.
//!
//! The client carries the sealed state between rounds.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wayleave_mcp::{
    Answers, Call, InputRequired, RpcError, SchemaError, StateSeal, Tool, ToolReply, ToolResult,
};

use crate::{
    asking::{CollectedAnswers, InputOutcome, Question, ask},
    no_arguments,
};

/// Time a person has to answer.
const LIFE: Duration = Duration::from_mins(10);

const REQUEST_STATE: &str = "test_input_required_result_request_state";
const TAMPERED_STATE: &str = "test_input_required_result_tampered_state";
const MULTIPLE_INPUTS: &str = "test_input_required_result_multiple_inputs";
const MULTI_ROUND: &str = "test_input_required_result_multi_round";

pub(crate) fn tools() -> Result<Vec<Tool>, SchemaError> {
    let mut tools = remembering_nothing()?;
    tools.extend(remembering(&Arc::new(StateSeal::new(random_key())))?);
    Ok(tools)
}

fn remembering_nothing() -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![
        Tool::new(
            "test_input_required_result_elicitation",
            no_arguments(),
            |call| {
                plain(
                    call,
                    vec![asking_name("user_name", "What is your name?")],
                    |given| format!("Hello, {}!", given.text("user_name", "/content/name")),
                )
            },
        )?
        .describe("Greets the person by the name they give."),
        Tool::new(
            "test_input_required_result_sampling",
            no_arguments(),
            |call| {
                let question =
                    Question::model("capital_question", "What is the capital of France?", 100);
                plain(call, vec![question], |given| {
                    given.text("capital_question", "/content/text").to_owned()
                })
            },
        )?
        .describe("Has the client's model answer a question."),
        Tool::new(
            "test_input_required_result_list_roots",
            no_arguments(),
            |call| plain(call, vec![Question::roots("client_roots")], roots),
        )?
        .describe("Says where the client works."),
        Tool::new(
            "test_input_required_result_capabilities",
            no_arguments(),
            |call| plain(call.clone(), askable(&call), |_| "Thank you.".to_owned()),
        )?
        .describe("Asks only for what the client declares."),
    ])
}

fn remembering(seal: &Arc<StateSeal>) -> Result<Vec<Tool>, SchemaError> {
    let confirmed = |tool| sealed(tool, seal, confirmation, |_| "state-ok".to_owned());
    Ok(vec![
        confirmed(REQUEST_STATE)?.describe("Completes only with the state it gave out."),
        confirmed(TAMPERED_STATE)?.describe("Refuses a state it did not give out."),
        sealed(MULTIPLE_INPUTS, seal, three_questions, |given| {
            let name = given.text("user_name", "/content/name");
            let greeting = given.text("greeting", "/content/text");
            format!("{greeting} {name}, {}", roots(given))
        })?
        .describe("Asks the person, the model and the client at once."),
        multi_round(seal.clone())?.describe("Asks for a name, then for a colour."),
    ])
}

/// A key for the lifetime of the process. States sealed under it do not outlive the process either.
fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    let halves = [Uuid::new_v4(), Uuid::new_v4()];
    for (half, random) in key.chunks_exact_mut(16).zip(halves) {
        half.copy_from_slice(random.as_bytes());
    }
    key
}

fn asking_name(key: &'static str, message: &str) -> Question {
    Question::field(key, message, "name", "string")
}

fn confirmation() -> Vec<Question> {
    vec![Question::field(
        "confirm",
        "Please confirm",
        "ok",
        "boolean",
    )]
}

fn three_questions() -> Vec<Question> {
    vec![
        asking_name("user_name", "What is your name?"),
        Question::model("greeting", "Generate a greeting", 50),
        Question::roots("client_roots"),
    ]
}

fn askable(call: &Call) -> Vec<Question> {
    three_questions()
        .into_iter()
        .filter(|question| question.can_be_asked(&call.context))
        .collect()
}

fn roots(given: &CollectedAnswers) -> String {
    format!("roots: {}", given.answer("client_roots"))
}

/// Asks and answers without state between rounds.
async fn plain(
    call: Call,
    questions: Vec<Question>,
    words: impl Fn(&CollectedAnswers) -> String,
) -> Result<ToolReply, RpcError> {
    Ok(match ask(&call.context, &call.answers, &questions).await? {
        InputOutcome::Again(required) => required.into(),
        InputOutcome::Answered(given) => ToolResult::text(words(&given)).into(),
    })
}

/// A tool that accepts answers only with a state it sealed for the same caller.
fn sealed(
    tool: &'static str,
    seal: &Arc<StateSeal>,
    questions: fn() -> Vec<Question>,
    words: fn(&CollectedAnswers) -> String,
) -> Result<Tool, SchemaError> {
    let seal = seal.clone();
    Tool::new(tool, no_arguments(), move |call| {
        let seal = seal.clone();
        async move {
            let caller = call.context.caller();
            let answers = match &call.answers.state {
                Some(state) => {
                    seal.open::<()>(caller, tool, state)?;
                    call.answers.clone()
                }
                None => Answers::default(),
            };
            let reply: ToolReply = match ask(&call.context, &answers, &questions()).await? {
                InputOutcome::Again(required) => required
                    .with_state(seal.seal(caller, tool, &(), LIFE)?)
                    .into(),
                InputOutcome::Answered(given) => ToolResult::text(words(&given)).into(),
            };
            Ok(reply)
        }
    })
}

fn multi_round(seal: Arc<StateSeal>) -> Result<Tool, SchemaError> {
    Tool::new(MULTI_ROUND, no_arguments(), move |call| {
        let seal = seal.clone();
        async move { two_steps(&seal, call).await }
    })
}

/// The state: the name, once the client has given it.
type Name = Option<String>;

async fn two_steps(seal: &StateSeal, call: Call) -> Result<ToolReply, RpcError> {
    let caller = call.context.caller();
    let again = |required: InputRequired, known: Name| {
        let state = seal.seal(caller, MULTI_ROUND, &known, LIFE)?;
        Ok(required.with_state(state).into())
    };
    let (known, answers) = match &call.answers.state {
        Some(state) => (
            seal.open::<Name>(caller, MULTI_ROUND, state)?,
            call.answers.clone(),
        ),
        None => (None, Answers::default()),
    };
    let (name, answers) = match known {
        Some(name) => (name, answers),
        None => match ask(&call.context, &answers, &[first_step()]).await? {
            InputOutcome::Again(required) => return again(required, None),
            // The answers in this request were for the first step, not for the second.
            InputOutcome::Answered(given) => (
                given.text("step1", "/content/name").to_owned(),
                Answers::default(),
            ),
        },
    };
    match ask(&call.context, &answers, &[second_step()]).await? {
        InputOutcome::Again(required) => again(required, Some(name)),
        InputOutcome::Answered(given) => {
            let color = given.text("step2", "/content/color");
            Ok(ToolResult::text(format!("{name} likes {color}.")).into())
        }
    }
}

fn first_step() -> Question {
    asking_name("step1", "Step 1: What is your name?")
}

fn second_step() -> Question {
    let message = "Step 2: What is your favorite color?";
    Question::field("step2", message, "color", "string")
}
