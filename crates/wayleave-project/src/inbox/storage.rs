//! The files of the inbox: one per proposal, in the project's private folder.
//!
//! One lock, shared by all processes of the project, guards every change. Files are replaced
//! atomically.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
};

use wayleave_ledger::{FOLDER, Millis};
use wayleave_model::digest::Digest;

use super::{
    InboxDecision, InboxError, InboxProposal, InboxStatus, MAX_PROPOSAL_BYTES, MAX_ROW_ACCESSES,
    MAX_WAITING, MAX_WAITING_PER_TOKEN, NewProposal, PROPOSAL_LIFETIME, PROPOSAL_RETENTION,
    ProposalRowAccess, text,
};
use crate::{atomic_file, project::Project};

/// Folder of the inbox inside the project's private folder.
const INBOX_FOLDER: &str = "inbox";
/// File with the last assigned number.
const LAST_ID: &str = "last";
/// Largest accepted proposal file: the mapping as a JSON string, and its metadata.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The contents of an inbox.
#[derive(Debug, Default)]
pub struct InboxListing {
    /// The proposals, newest first.
    pub proposals: Vec<InboxProposal>,
    /// The numbers of proposals whose files cannot be read, or were altered.
    pub unreadable: Vec<u64>,
}

/// The inbox of a project.
#[derive(Debug, Clone)]
pub struct ProposalInbox {
    folder: PathBuf,
}

impl ProposalInbox {
    /// The inbox of a project.
    pub fn new(project: &Project) -> Self {
        Self {
            folder: project.folder().join(FOLDER).join(INBOX_FOLDER),
        }
    }

    /// All stored proposals, newest first, and the damaged ones.
    pub fn listing(&self) -> Result<InboxListing, InboxError> {
        let mut all = InboxListing::default();
        for id in self.ids()? {
            match self.get(id) {
                Ok(proposal) => all.proposals.push(proposal),
                // Removed meanwhile.
                Err(InboxError::Unknown { .. }) => {}
                // One bad file must not hide the others.
                Err(InboxError::Disk { .. }) => all.unreadable.push(id),
                Err(error) => return Err(error),
            }
        }
        all.proposals.sort_by_key(|it| std::cmp::Reverse(it.id));
        all.unreadable.sort_unstable();
        Ok(all)
    }

    /// The proposals that can be read, newest first.
    pub fn list(&self) -> Result<Vec<InboxProposal>, InboxError> {
        Ok(self.listing()?.proposals)
    }

    /// The number of waiting proposals.
    pub fn waiting(&self, now: Millis) -> Result<usize, InboxError> {
        let waits = |it: &InboxProposal| it.status(now) == InboxStatus::Waiting;
        Ok(self.list()?.iter().filter(|it| waits(it)).count())
    }

    /// The proposal of that number.
    pub fn get(&self, id: u64) -> Result<InboxProposal, InboxError> {
        let path = self.path(id);
        let length = match fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(InboxError::Unknown { id });
            }
            Err(cause) => return Err(unread(cause)),
        };
        if length > MAX_FILE_BYTES {
            return Err(unread(io::Error::other("a file of it is too large")));
        }
        let bytes = fs::read(&path).map_err(unread)?;
        let proposal: InboxProposal =
            serde_json::from_slice(&bytes).map_err(|error| unread(error.into()))?;
        let is_whole =
            proposal.id == id && Digest::from_bytes(proposal.text.as_bytes()) == proposal.digest;
        if is_whole {
            Ok(proposal)
        } else {
            Err(unread(io::Error::other("a file of it was altered")))
        }
    }

    /// Stores a proposal. Replaces a waiting proposal of the same token for the same dataset, and
    /// keeps its number.
    pub fn submit(&self, new: NewProposal, now: Millis) -> Result<InboxProposal, InboxError> {
        if new.text.len() > MAX_PROPOSAL_BYTES {
            let bytes = new.text.len();
            return Err(InboxError::TooLarge { bytes });
        }
        text::reason(&new.reason)?;
        let _lock = self.lock()?;
        let all = self.list()?;
        self.remove_old(&all, now);
        let own = |it: &&InboxProposal| it.proposer.token == new.proposer.token;
        let waiting = || {
            let all = all.iter();
            all.filter(|it| it.status(now) == InboxStatus::Waiting)
        };
        let digest = Digest::from_bytes(new.text.as_bytes());
        let replaced = waiting().filter(own).find(|it| it.dataset == new.dataset);
        if let Some(known) = replaced {
            if known.digest == digest && known.reason == new.reason {
                return Ok(known.clone());
            }
            let revised = InboxProposal {
                digest,
                text: new.text,
                reason: new.reason,
                proposer: new.proposer,
                revised: Some(now),
                expires: now.saturating_add(PROPOSAL_LIFETIME),
                row_accesses: Vec::new(),
                ..known.clone()
            };
            self.write(&revised)?;
            return Ok(revised);
        }
        let full = |whose, most| InboxError::Full { whose, most };
        if waiting().filter(own).count() >= MAX_WAITING_PER_TOKEN {
            return Err(full("of this token", MAX_WAITING_PER_TOKEN));
        }
        if waiting().count() >= MAX_WAITING {
            return Err(full("in all", MAX_WAITING));
        }
        let returned = |it: &&InboxProposal| it.status(now) == InboxStatus::Returned;
        let mut earlier = all.iter().filter(own).filter(returned);
        let proposal = InboxProposal {
            id: self.next_id(&all)?,
            follows: earlier.find(|it| it.dataset == new.dataset).map(|it| it.id),
            dataset: new.dataset,
            digest,
            text: new.text,
            reason: new.reason,
            proposer: new.proposer,
            at: now,
            revised: None,
            expires: now.saturating_add(PROPOSAL_LIFETIME),
            decision: None,
            row_accesses: Vec::new(),
        };
        self.write(&proposal)?;
        Ok(proposal)
    }

    /// Records a decision on a proposal that still waits and has the digest `read`.
    pub fn decide(
        &self,
        id: u64,
        read: Digest,
        decision: InboxDecision,
    ) -> Result<InboxProposal, InboxError> {
        text::comment(&decision.comment)?;
        let _lock = self.lock()?;
        let mut proposal = self.waiting_as_read(id, read, decision.at)?;
        proposal.decision = Some(decision);
        self.write(&proposal)?;
        Ok(proposal)
    }

    /// The proposal, if it still waits and has the digest `read`.
    pub fn waiting_as_read(
        &self,
        id: u64,
        read: Digest,
        now: Millis,
    ) -> Result<InboxProposal, InboxError> {
        let proposal = self.get(id)?;
        match proposal.status(now) {
            InboxStatus::Waiting if proposal.digest == read => Ok(proposal),
            InboxStatus::Waiting => Err(InboxError::Replaced {
                id,
                now: proposal.digest,
            }),
            status => Err(InboxError::Decided { id, status }),
        }
    }

    /// Stores with a proposal that a person was shown its rows.
    pub fn record_row_access(&self, id: u64, access: ProposalRowAccess) -> Result<(), InboxError> {
        let _lock = self.lock()?;
        let mut proposal = self.get(id)?;
        proposal.row_accesses.push(access);
        let too_many = proposal.row_accesses.len().saturating_sub(MAX_ROW_ACCESSES);
        proposal.row_accesses.drain(..too_many);
        self.write(&proposal)
    }

    fn path(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn ids(&self) -> Result<Vec<u64>, InboxError> {
        let listing = match fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(unread(cause)),
        };
        let mut ids = Vec::new();
        for entry in listing {
            let name = entry.map_err(unread)?.file_name();
            let name = name.to_str().and_then(|it| it.strip_suffix(".json"));
            ids.extend(name.and_then(|it| it.parse::<u64>().ok()));
        }
        Ok(ids)
    }

    /// Assigns a number that was never used, not even by a removed proposal.
    fn next_id(&self, all: &[InboxProposal]) -> Result<u64, InboxError> {
        // The files too: one that cannot be read is not among the proposals.
        let known = all.iter().map(|it| it.id).chain(self.ids()?);
        let last = known.fold(self.last_id()?, u64::max);
        let next = last.saturating_add(1);
        self.replace(LAST_ID, next.to_string().as_bytes())?;
        Ok(next)
    }

    /// The last assigned number; 0 if none was assigned yet.
    fn last_id(&self) -> Result<u64, InboxError> {
        let text = match fs::read_to_string(self.folder.join(LAST_ID)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(cause) => return Err(unread(cause)),
        };
        let damaged = |_| unread(io::Error::other("the file of its last number is damaged"));
        text.trim().parse().map_err(damaged)
    }

    fn remove_old(&self, all: &[InboxProposal], now: Millis) {
        for proposal in all {
            let is_over = proposal.status(now) != InboxStatus::Waiting;
            if is_over && now >= proposal.ended().saturating_add(PROPOSAL_RETENTION) {
                // A failed removal is retried next time.
                let _ = fs::remove_file(self.path(proposal.id));
            }
        }
    }

    fn write(&self, proposal: &InboxProposal) -> Result<(), InboxError> {
        let bytes = serde_json::to_vec(proposal).map_err(|error| unwritten(error.into()))?;
        self.replace(&format!("{}.json", proposal.id), &bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), InboxError> {
        let replaced = atomic_file::replace(&self.folder.join(name), bytes, 0o600);
        replaced.map_err(unwritten)
    }

    /// Locks the inbox. Waits while another process changes it.
    fn lock(&self) -> Result<File, InboxError> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unwritten(error));
            }
            _ => {}
        }
        let folder = File::open(&self.folder).map_err(unwritten)?;
        folder.lock().map_err(unwritten)?;
        Ok(folder)
    }
}

fn unread(cause: io::Error) -> InboxError {
    let doing = "read";
    InboxError::Disk { doing, cause }
}

fn unwritten(cause: io::Error) -> InboxError {
    let doing = "written";
    InboxError::Disk { doing, cause }
}
