//! `wayleave grant narrow`: replaces a grant by a narrower one.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use wayleave_ledger::GrantRequest;
use wayleave_model::grant::RowFilter;
use wayleave_plan::package::GrantNarrowing;
use wayleave_project::{ratified_mappings::ratified_mapping, render};

use super::{
    create,
    expiry::{self, Expiry},
};
use crate::{actor, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The grant.
    #[arg(value_name = "GRANT")]
    grant: String,
    /// A stream to keep, whole or by some of its fields [default: all of them].
    #[arg(long = "stream", value_name = "STREAM[=FIELD,…]", value_parser = create::stream)]
    streams: Vec<(String, Option<BTreeSet<String>>)>,
    /// A further filter on the rows of a stream, in addition to the existing one.
    #[arg(long = "rows", value_name = "STREAM=FILTER", value_parser = create::rows)]
    rows: Vec<(String, RowFilter)>,
    /// A capability that stays [default: all that can still be called].
    #[arg(long = "capability", value_name = "NAME")]
    capabilities: Vec<String>,
    /// When it ends, no later than before: `12h`, `30d`, `6w`, a date or a time [default: as before].
    #[arg(long, value_name = "WHEN", value_parser = expiry::parse)]
    expires: Option<Expiry>,
    /// What it is for, in your words; kept for ever [default: as before].
    #[arg(long, value_name = "TEXT")]
    purpose: Option<String>,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    #[command(flatten)]
    signing: SigningArgs,
}

impl Arguments {
    fn narrowing(&self) -> GrantNarrowing {
        let capabilities: BTreeSet<String> = self.capabilities.iter().cloned().collect();
        GrantNarrowing {
            streams: self.streams.iter().cloned().collect(),
            rows: self.rows.iter().cloned().collect(),
            capabilities: Some(capabilities).filter(|it| !it.is_empty()),
        }
    }
}

pub(super) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let project = arguments.signing.sign(project).await?;
    let governance = project.governance();
    let state = governance.ledger().state().await?;
    let id = &arguments.grant;
    let wider = state.grant(id).ok_or_else(|| super::unknown(id))?;
    let mapping = ratified_mapping(&project, &wider.terms.dataset).await?;
    let terms = arguments.narrowing().terms(&wider.terms, &mapping);
    let terms = terms.map_err(|errors| render::granting::unfit(&errors, id))?;
    let now = expiry::now(&state);
    let expires = arguments.expires.map(|it| it.moment(now));
    let narrower = GrantRequest {
        terms,
        expires: expires.or(wider.expires),
        purpose: arguments.purpose.unwrap_or_else(|| wider.purpose.clone()),
    };
    if render::granting::losses(wider, &narrower).is_empty() {
        let why = render::granting::loses_nothing(id)
            .hint("name the streams and fields that stay, or a row filter");
        return Err(why.into());
    }
    let who = arguments.who.unwrap_or_else(actor::os_user);
    let grant = governance.narrow_grant(id, narrower.clone(), &who).await?;
    let holders = render::grants::holders(&state, id, now);
    let rendering = render::granting::narrowed(&grant, wider, &narrower, &who, &holders);
    Ok(output.show(&rendering))
}
