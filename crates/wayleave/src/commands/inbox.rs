//! `wayleave inbox`: shows proposals of agents, and records a human's decision on them.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use wayleave_ledger::{Clock as _, SystemClock};
use wayleave_project::{
    Explanation,
    inbox::{self, Agreement, ProposalInbox},
    render,
};

use super::diff;
use crate::{actor::ActorArgs, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List the proposals that wait.
    List {
        /// Also those that were decided or have expired.
        #[arg(long)]
        all: bool,
    },
    /// Show a proposal: from whom, why, and in words what ratifying it would change.
    Show {
        /// The proposal's number.
        #[arg(value_name = "PROPOSAL")]
        id: u64,
    },
    /// Take a proposal into the drafts, to go on with it yourself.
    Accept {
        /// The proposal's number.
        #[arg(value_name = "PROPOSAL")]
        id: u64,
        /// Replace a draft that has edits.
        #[arg(long)]
        overwrite: bool,
        #[command(flatten)]
        act: ActorArgs,
    },
    /// Agree to a proposal, byte for byte.
    Ratify {
        /// The proposal's number.
        #[arg(value_name = "PROPOSAL")]
        id: u64,
        #[command(flatten)]
        act: ActorArgs,
        #[command(flatten)]
        signing: SigningArgs,
        /// Do not compare the proposal with its live sources.
        #[arg(long)]
        offline: bool,
    },
    /// Send a proposal back to the agent.
    Return {
        /// The proposal's number.
        #[arg(value_name = "PROPOSAL")]
        id: u64,
        /// What should change; the agent reads it.
        #[arg(long, value_name = "TEXT")]
        comment: String,
        /// Who you are [default: the user of this machine].
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
    },
}

impl Action {
    /// Whether only the project folder is used.
    pub(crate) fn is_local(&self) -> bool {
        !matches!(self, Self::Ratify { offline: false, .. })
    }
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let (inbox, now) = (ProposalInbox::new(&project), SystemClock.now());
    let failed = |error| Failure::from(Explanation::from(error));
    match action {
        Action::List { all } => {
            let listing = inbox.listing().map_err(failed)?;
            Ok(output.show(&render::inbox::list(&listing, now, all)))
        }
        Action::Show { id } => {
            let proposal = inbox.get(id).map_err(failed)?;
            let review = inbox::review(&project, &proposal).await;
            let shown = render::inbox::show(&proposal, review, now);
            Ok(output.show(&shown?))
        }
        Action::Accept { id, overwrite, act } => {
            let read = inbox.get(id).map_err(failed)?.digest;
            let accepted = inbox::accept(&project, id, read, &act.who(), overwrite, now).await;
            let accepted = accepted.map_err(|error| Failure::from(Explanation::from(error)))?;
            Ok(output.show(&render::inbox::accepted(&accepted)))
        }
        Action::Ratify {
            id,
            act,
            signing,
            offline,
        } => {
            let proposal = inbox.get(id).map_err(failed)?;
            let review = match inbox::review(&project, &proposal).await {
                Ok(review) => review,
                Err(error) => return diff::refused(error, output),
            };
            let against = review.current.digest();
            output.preface(render::inbox::show(&proposal, Ok(review), now)?.text());
            let dataset = &proposal.dataset;
            let asked = render::review::decision(dataset, proposal.digest);
            let undone = "nothing was ratified";
            let decided = signing.decide(project.clone(), &asked, dataset, undone);
            let project = decided.await?;
            let agreement = Agreement {
                read: proposal.digest,
                against,
                who: act.who(),
                note: act.note,
            };
            let probe = (!offline).then(super::source_probe);
            match inbox::ratify(&project, id, agreement, probe.as_ref(), now).await {
                Ok(outcome) => Ok(output.show(&render::review::ratified(&outcome))),
                Err(error) => Ok(output.show(&render::inbox::not_ratified(error)?)),
            }
        }
        Action::Return { id, comment, who } => {
            let read = inbox.get(id).map_err(failed)?.digest;
            let who = who.unwrap_or_else(crate::actor::os_user);
            let returned = inbox::send_back(&project, id, read, &who, &comment, now);
            Ok(output.show(&render::inbox::returned(&returned.map_err(failed)?)))
        }
    }
}
