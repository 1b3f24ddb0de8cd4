//! The primitives being served, and the one way to change them.
//!
//! Readers hold an immutable snapshot. A change is a [`Batch`], committed as a whole: the new
//! snapshot is in place before any listener is told of it.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rpds::RedBlackTreeMapSync;

use crate::{
    Completion, CompletionRef, Prompt, Resource, ResourceTemplate, SubscriptionHost, Tool,
    listeners::Listeners,
    primitive_set::{Effect, PrimitiveSet},
};

tokio::task_local! {
    /// The last revision the running handler committed, if any.
    pub(crate) static COMMITTED: Cell<u64>;
}

/// All primitives served at one revision.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) tools: PrimitiveSet<Tool>,
    pub(crate) resources: PrimitiveSet<Resource>,
    pub(crate) templates: PrimitiveSet<ResourceTemplate>,
    pub(crate) prompts: PrimitiveSet<Prompt>,
    pub(crate) completions: RedBlackTreeMapSync<CompletionRef, Arc<Completion>>,
}

enum Step {
    PutTool(Tool),
    RemoveTool(String),
    PutResource(Resource),
    RemoveResource(String),
    PutTemplate(ResourceTemplate),
    RemoveTemplate(String),
    PutPrompt(Prompt),
    RemovePrompt(String),
    PutCompletion(Completion),
    RemoveCompletion(CompletionRef),
}

/// Changes to be made together. Adding a primitive whose name is in use replaces it.
#[derive(Default)]
#[must_use = "a batch changes nothing until it is committed"]
pub struct Batch {
    steps: Vec<Step>,
}

macro_rules! steps {
    ($($(#[$doc:meta])* $method:ident($argument:ty) => $step:ident;)*) => {
        impl Batch {
            /// An empty batch.
            pub fn new() -> Self {
                Self::default()
            }
            $(
                $(#[$doc])*
                pub fn $method(mut self, what: impl Into<$argument>) -> Self {
                    self.steps.push(Step::$step(what.into()));
                    self
                }
            )*
        }
    };
}

steps! {
    /// Adds or replaces a tool.
    add_tool(Tool) => PutTool;
    /// Removes a tool, if it is there.
    remove_tool(String) => RemoveTool;
    /// Adds or replaces a resource.
    add_resource(Resource) => PutResource;
    /// Removes a resource, if it is there.
    remove_resource(String) => RemoveResource;
    /// Adds or replaces a resource template.
    add_template(ResourceTemplate) => PutTemplate;
    /// Removes a resource template, if it is there.
    remove_template(String) => RemoveTemplate;
    /// Adds or replaces a prompt.
    add_prompt(Prompt) => PutPrompt;
    /// Removes a prompt, if it is there.
    remove_prompt(String) => RemovePrompt;
    /// Adds or replaces a completion. Completions are not listed, so nobody is notified.
    add_completion(Completion) => PutCompletion;
    /// Removes a completion, if it is there.
    remove_completion(CompletionRef) => RemoveCompletion;
}

impl Step {
    fn apply(self, to: &mut Snapshot, changed: &mut Commit) -> Effect {
        let revision = to.revision;
        let (effect, list) = match self {
            Self::PutTool(tool) => (to.tools.put(tool, revision), &mut changed.tools),
            Self::RemoveTool(name) => (to.tools.remove(&name), &mut changed.tools),
            Self::PutResource(it) => (to.resources.put(it, revision), &mut changed.resources),
            Self::RemoveResource(uri) => (to.resources.remove(&uri), &mut changed.resources),
            Self::PutTemplate(it) => (to.templates.put(it, revision), &mut changed.resources),
            Self::RemoveTemplate(it) => (to.templates.remove(&it), &mut changed.resources),
            Self::PutPrompt(prompt) => (to.prompts.put(prompt, revision), &mut changed.prompts),
            Self::RemovePrompt(name) => (to.prompts.remove(&name), &mut changed.prompts),
            Self::PutCompletion(completion) => {
                to.completions
                    .insert_mut(completion.reference.clone(), Arc::new(completion));
                return Effect::Quiet;
            }
            Self::RemoveCompletion(reference) => {
                return if to.completions.remove_mut(&reference) {
                    Effect::Quiet
                } else {
                    Effect::None
                };
            }
        };
        *list |= effect == Effect::Listed;
        effect
    }
}

/// The effect of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Commit {
    /// The revision now being served. It increases only when something changed.
    pub revision: u64,
    /// The tool list changed.
    pub tools: bool,
    /// The resource or template list changed.
    pub resources: bool,
    /// The prompt list changed.
    pub prompts: bool,
}

struct RegistryState {
    current: ArcSwap<Snapshot>,
    writing: Mutex<()>,
    listeners: Arc<Listeners>,
    subscription_host: OnceLock<Arc<dyn SubscriptionHost>>,
}

/// The primitives being served. Cheap to clone; every clone is the same registry.
///
/// ```
/// use serde_json::json;
/// use wayleave_mcp::{Batch, Registry, Tool, ToolResult};
///
/// let registry = Registry::new();
/// let ping = Tool::new("ping", json!({ "type": "object" }), |_| async {
///     Ok(ToolResult::text("pong"))
/// })?;
/// let commit = registry.commit(Batch::new().add_tool(ping));
/// assert!(commit.tools);
/// assert_eq!(registry.revision(), 1);
///
/// // Removing what is not there commits nothing.
/// let commit = registry.commit(Batch::new().remove_tool("pong"));
/// assert_eq!((commit.revision, commit.tools), (1, false));
/// # Ok::<(), wayleave_mcp::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Registry(Arc<RegistryState>);

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self(Arc::new(RegistryState {
            current: ArcSwap::default(),
            writing: Mutex::new(()),
            listeners: Arc::default(),
            subscription_host: OnceLock::new(),
        }))
    }

    /// Makes every change of `batch` visible at once, then wakes the listeners of the lists that
    /// changed. Returns without waiting for them; [`settled`](Self::settled) does.
    pub fn commit(&self, batch: Batch) -> Commit {
        let _writing = self
            .0
            .writing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.0.current.load());
        let before = next.revision;
        next.revision += 1;
        let mut commit = Commit {
            revision: next.revision,
            ..Commit::default()
        };
        let mut effect = Effect::None;
        for step in batch.steps {
            effect = effect.max(step.apply(&mut next, &mut commit));
        }
        if effect == Effect::None {
            return Commit {
                revision: before,
                ..Commit::default()
            };
        }
        self.0.current.store(Arc::new(next));
        if effect == Effect::Listed {
            self.0.listeners.wake(commit.revision);
            // Outside a handler there is no reply to hold back.
            let _ = COMMITTED.try_with(|committed| committed.set(commit.revision));
        }
        commit
    }

    /// Whether a tool of that name exists, regardless of visibility.
    pub fn has_tool(&self, name: &str) -> bool {
        self.snapshot().tools.get(name).is_some()
    }

    /// Adds or replaces one tool.
    pub fn add_tool(&self, tool: Tool) -> Commit {
        self.commit(Batch::new().add_tool(tool))
    }

    /// Removes one tool, if it is there.
    pub fn remove_tool(&self, name: &str) -> Commit {
        self.commit(Batch::new().remove_tool(name))
    }

    /// Tells the subscribers of exactly this URI that its contents changed.
    pub fn updated(&self, uri: &str) {
        self.0.listeners.updated(uri);
    }

    /// Lets `host` watch the resources that clients subscribe to. Set once, before serving; later
    /// calls have no effect.
    pub fn watch_with(&self, host: Arc<dyn SubscriptionHost>) {
        let _ = self.0.subscription_host.set(host);
    }

    pub(crate) fn subscription_host(&self) -> Option<&Arc<dyn SubscriptionHost>> {
        self.0.subscription_host.get()
    }

    /// The revision being served.
    pub fn revision(&self) -> u64 {
        self.0.current.load().revision
    }

    /// Number of clients listening for changes.
    pub fn listening(&self) -> usize {
        self.0.listeners.count()
    }

    /// Waits until every listener that keeps up has been sent the changes up to `revision`.
    ///
    /// A listener that does not take its notice within `timeout` is left behind: it is notified
    /// later, and nobody waits for it again until then. The reply of a handler that committed waits
    /// in this way automatically.
    pub async fn settled(&self, revision: u64, timeout: Duration) {
        self.0.listeners.settled(revision, timeout).await;
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.0.current.load_full()
    }

    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        &self.0.listeners
    }
}
