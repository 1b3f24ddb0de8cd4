//! Prompts, one of them with completions and one that asks before it answers.

use wayleave_mcp::{
    Batch, Completion, CompletionRef, Content, Prompt, PromptCall, PromptMessage, PromptReply,
    ResourceContents, Role, RpcError,
};

use crate::{
    asking::{InputOutcome, Question, ask},
    media,
};

const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

pub(crate) fn add(batch: Batch) -> Batch {
    batch
        .add_prompt(simple())
        .add_prompt(with_arguments())
        .add_prompt(with_embedded_resource())
        .add_prompt(with_image())
        .add_prompt(asking_first())
        .add_completion(completion())
}

fn simple() -> Prompt {
    Prompt::new("test_simple_prompt", |_| async {
        Ok(PromptMessage::user("This is a simple prompt for testing."))
    })
    .describe("A message.")
}

fn with_arguments() -> Prompt {
    Prompt::new(WITH_ARGUMENTS, |call| async move {
        Ok(PromptMessage::user(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            call.text("arg1"),
            call.text("arg2")
        )))
    })
    .describe("A message with two arguments in it.")
    .required("arg1", "First test argument")
    .required("arg2", "Second test argument")
}

fn completion() -> Completion {
    Completion::new(
        CompletionRef::prompt(WITH_ARGUMENTS),
        |completing| async move {
            let values = ["paris", "park", "party", "test", "testing"];
            Ok(values
                .iter()
                .filter(|value| value.starts_with(&completing.value))
                .map(ToString::to_string)
                .collect())
        },
    )
}

fn with_embedded_resource() -> Prompt {
    Prompt::new("test_prompt_with_embedded_resource", |call| async move {
        let resource = ResourceContents::text(
            call.text("resourceUri"),
            "text/plain",
            "Embedded resource content for testing.",
        );
        Ok(vec![
            shown(Content::Resource(resource)),
            PromptMessage::user("Please process the embedded resource above."),
        ])
    })
    .describe("A resource and a message.")
    .required("resourceUri", "URI of the resource to embed")
}

fn with_image() -> Prompt {
    Prompt::new("test_prompt_with_image", |_| async {
        Ok(vec![
            shown(media::image()),
            PromptMessage::user("Please analyze the image above."),
        ])
    })
    .describe("An image and a message.")
}

fn shown(content: Content) -> PromptMessage {
    PromptMessage {
        role: Role::User,
        content,
    }
}

fn asking_first() -> Prompt {
    Prompt::new("test_input_required_result_prompt", in_context)
        .describe("A message, once the person has said for what context.")
}

async fn in_context(call: PromptCall) -> Result<PromptReply, RpcError> {
    let question = Question::field(
        "user_context",
        "What context should the prompt use?",
        "context",
        "string",
    );
    Ok(
        match ask(&call.context, &call.answers, &[question]).await? {
            InputOutcome::Again(required) => required.into(),
            InputOutcome::Answered(given) => {
                let context = given.text("user_context", "/content/context");
                PromptMessage::user(format!("Use this context: {context}")).into()
            }
        },
    )
}
