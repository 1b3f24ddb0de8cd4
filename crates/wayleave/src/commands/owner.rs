//! `wayleave owner`: manages the people whose keys sign decisions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Subcommand;
use wayleave_ledger::{OwnerKey, OwnerKeyFile, Signer};
use wayleave_project::{Project, render};

use crate::{
    actor::{self, ActorArgs},
    confirm,
    failure::Failure,
    output::Output,
    signing::SigningArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Register a person's key. From the first owner on, an owner signs every decision.
    Add(Add),
    /// List the owners and the fingerprints of their keys.
    List {
        /// Also those who were removed.
        #[arg(long)]
        all: bool,
    },
    /// Remove an owner. What they signed stays signed; the last one cannot be removed.
    Remove {
        /// The owner's name.
        #[arg(value_name = "NAME")]
        owner: String,
        #[command(flatten)]
        act: ActorArgs,
        #[command(flatten)]
        signing: SigningArgs,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// What to call them.
    #[arg(value_name = "NAME")]
    owner: String,
    /// Their public key: a `.pub` file, of an SSH key or of one that `--new-key` made.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "new_key",
        required_unless_present = "new_key"
    )]
    public_key: Option<PathBuf>,
    /// Make a key, and keep it in this new file under a passphrase you choose.
    #[arg(long, value_name = "FILE")]
    new_key: Option<PathBuf>,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    #[command(flatten)]
    signing: SigningArgs,
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    match action {
        Action::Add(arguments) => add(arguments, project, output).await,
        Action::List { all } => {
            let state = project.governance().ledger().state().await?;
            Ok(output.show(&render::owners::list(&state, all)))
        }
        Action::Remove {
            owner,
            act,
            signing,
        } => {
            let project = signing.sign(project).await?;
            let governance = project.governance();
            let who = act.who();
            let entry = governance.remove_owner(&owner, &who, &act.note).await?;
            Ok(output.show(&render::owners::removed(&owner, &who, &entry)))
        }
    }
}

async fn add(arguments: Add, project: Project, output: Output) -> Result<ExitCode, Failure> {
    let state = project.governance().ledger().state().await?;
    let owner = &arguments.owner;
    let is_first = state.first_owner().is_none();
    let project = if is_first {
        confirm::require_typed(
            &format!("make `{owner}` the first owner of this project"),
            owner,
            "no owner was added",
        )?;
        project
    } else {
        arguments.signing.sign(project).await?
    };
    let made = key(&arguments, &project)?;
    let project = match made.signer {
        Some(signer) if is_first => project.with_signer(signer),
        None if is_first => project.with_signer(arguments.signing.holder_of(&made.key)?),
        _ => project,
    };
    let who = arguments.who.clone().unwrap_or_else(actor::os_user);
    let governance = project.governance();
    governance.add_owner(owner, made.key, &who).await?;
    let state = governance.ledger().state().await?;
    let added = state.owners().get(owner);
    let added = added.ok_or_else(|| Failure::bug("the new owner is not among the owners"))?;
    Ok(output.show(&render::owners::added(&state, added).with_remarks(made.remark)))
}

/// The key to register.
struct NewOwnerKey {
    key: OwnerKey,
    /// Its signer, if it was created.
    signer: Option<Arc<dyn Signer>>,
    /// What the person must know of its files.
    remark: Option<String>,
}

/// The key to register: a new one, or that of a file.
fn key(arguments: &Add, project: &Project) -> Result<NewOwnerKey, Failure> {
    let undone = "no key was made";
    if let Some(path) = &arguments.new_key {
        refuse_inside(path, project)?;
        let passphrase = confirm::passphrase("a passphrase for the new key", undone)?;
        let again = confirm::passphrase("the same once more", undone)?;
        if secrecy::ExposeSecret::expose_secret(&passphrase)
            != secrecy::ExposeSecret::expose_secret(&again)
        {
            return Err(Failure::usage(format!("the two differ, and {undone}")));
        }
        let unlocked = OwnerKeyFile::create(path, &passphrase)?;
        let key = unlocked.key().clone();
        // To add this owner to other projects. The key works without it.
        let mut public = path.clone().into_os_string();
        public.push(".pub");
        let public = PathBuf::from(public);
        let written = fs::write(&public, format!("{key}\n")).err();
        let remark =
            written.map(|error| render::owners::unwritten_public_key(&public, &key, &error));
        return Ok(NewOwnerKey {
            key,
            signer: Some(Arc::new(unlocked)),
            remark,
        });
    }
    let path = arguments.public_key.as_deref().unwrap_or(Path::new(""));
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::from_error(&error)
            .hint("`--public-key` names a `.pub` file, such as `~/.ssh/id_ed25519.pub`")
    })?;
    let key = text.trim().parse();
    let key =
        key.map_err(|error: wayleave_ledger::ParseOwnerKeyError| Failure::from_error(&error))?;
    Ok(NewOwnerKey {
        key,
        signer: None,
        remark: None,
    })
}

/// Refuses a key file in the project folder, where agents that work on the project can read it.
fn refuse_inside(path: &Path, project: &Project) -> Result<(), Failure> {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")));
    let folder = fs::canonicalize(project.folder());
    if let (Ok(parent), Ok(folder)) = (parent, folder)
        && parent.starts_with(&folder)
    {
        return Err(
            Failure::usage("a key does not belong into the project folder")
                .hint("keep it where only its owner reads, such as `~/.config/wayleave/owner.key`"),
        );
    }
    Ok(())
}
