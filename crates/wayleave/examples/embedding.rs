//! A program that serves a project and adds an operation of its own:
//!
//! ```text
//! embedding PROJECT     serves it over standard input and output
//! ```
//!
//! `docs/guide/embedding.md` explains it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use wayleave::{
    Deployment, EnvironmentVariables, FieldError, FieldErrorCode, Operation, OperationCall,
    OperationError, ProcessToken, Project, Scope, SideEffects,
};

/// What a caller gives. Its schema is derived, and what breaks it never reaches the program.
#[derive(Deserialize, JsonSchema)]
struct Reminder {
    /// Whom to remind.
    #[schemars(length(min = 1, max = 80))]
    to: String,
    /// In how many days.
    #[schemars(range(min = 1, max = 30))]
    days: u8,
}

#[derive(Serialize)]
struct Scheduled {
    to: String,
    in_days: u8,
    by: String,
}

async fn remind(call: OperationCall, reminder: Reminder) -> Result<Scheduled, OperationError> {
    // A check that no schema can say.
    if reminder.to.trim() != reminder.to {
        let message = "`to` must not begin or end with a space";
        let error = FieldError::new("to", FieldErrorCode::Check, message);
        return Err(OperationError::Fields(vec![
            error.value(reminder.to.into()),
        ]));
    }
    Ok(Scheduled {
        to: reminder.to,
        in_days: reminder.days,
        by: call.subject().to_owned(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let project = Project::open(&folder)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let remind = Operation::new("remind", remind)
        .describe("Schedules a reminder.")
        .requires(Scope::Runtime)
        .effects(SideEffects::Adds);
    deployment.register(remind)?;
    let given = ProcessToken::read(&EnvironmentVariables::process())?;
    deployment
        .serve_stdio(given, CancellationToken::new())
        .await?;
    deployment.close().await;
    Ok(())
}
