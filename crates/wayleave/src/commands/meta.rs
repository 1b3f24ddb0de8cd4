//! `wayleave meta`: runs the authoring operations of agents from the command line.

use std::{io::Read as _, path::Path, process::ExitCode};

use serde_json::{Map, Value};
use wayleave_project::{
    Explanation,
    inbox::Proposer,
    meta::{MetaContext, MetaRegistry, OperationId},
};

use crate::{actor, failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The operation: `ping`, or a namespace and a name, such as `gen mapping`. Without one, all
    /// are listed.
    #[arg(value_name = "OPERATION", num_args = 0..=2)]
    operation: Vec<String>,
    /// Its input, as JSON; `-` reads it from standard input.
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        hide_default_value = true
    )]
    input: String,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let registry = MetaRegistry::built_in().map_err(|error| Failure::from_error(&error))?;
    if arguments.operation.is_empty() {
        list(&registry, output);
        return Ok(ExitCode::SUCCESS);
    }
    let id = format!("wayleave.meta.{}", arguments.operation.join("."));
    let id = OperationId::parse(&id).ok();
    let operation = id.as_ref().and_then(|id| registry.get(id));
    let Some(operation) = operation else {
        return Err(Failure::usage("there is no such operation")
            .hint("`wayleave meta` lists the operations"));
    };
    let input = input(arguments.input)?;
    let project = super::open(project)?;
    let caller = Proposer {
        token: None,
        name: actor::os_user(),
    };
    let context = MetaContext::new(project, super::source_probe(), caller);
    match operation.run(context, input).await {
        Ok(rendering) => Ok(output.show(&rendering)),
        Err(refusal) => {
            let failure = Failure::from(Explanation::from(&refusal));
            Ok(output.refuse(&refusal.document(), &failure))
        }
    }
}

fn input(given: String) -> Result<Map<String, Value>, Failure> {
    let mut text = given;
    if text == "-" {
        text.clear();
        let read = std::io::stdin().lock().take(8 * 1024 * 1024);
        let mut read = read;
        read.read_to_string(&mut text)
            .map_err(|error| Failure::from_error(&error))?;
    }
    serde_json::from_str(&text).map_err(|_| {
        Failure::usage("the input is not a JSON object")
            .hint("write it as `--input '{\"dataset\": \"shop\"}'`")
    })
}

fn list(registry: &MetaRegistry, output: Output) {
    let operations: Vec<Value> = registry
        .iter()
        .map(|it| {
            serde_json::json!({
                "id": it.id().as_str(),
                "scope": it.scope(),
                "idempotent": it.is_idempotent(),
                "description": it.description(),
                "input": it.input_schema(),
            })
        })
        .collect();
    let lines: Vec<String> = registry
        .iter()
        .map(|it| {
            let words = [it.id().namespace(), it.id().op()];
            let words = words.iter().filter(|it| !it.is_empty());
            let name: Vec<&str> = words.copied().collect();
            format!("{}\n    {}", name.join(" "), it.description())
        })
        .collect();
    output.answer(
        &serde_json::json!({ "operations": operations }),
        lines.join("\n"),
    );
}
