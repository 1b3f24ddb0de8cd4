//! The console of one project.

use std::sync::Arc;

use wayleave_ledger::{Clock as _, Millis, SystemClock};
use wayleave_project::Project;

use crate::{
    backend::ConsoleBackend,
    comparisons::ComparisonTable,
    links::{LinkError, LoginLinks},
    session::SessionTable,
    signing::ConsoleSigning,
};

/// The port of a console, and how its decisions are signed.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// The port it listens on, on loopback only.
    pub port: u16,
    /// How decisions are signed.
    pub signing: ConsoleSigning,
}

/// Answers the requests of a project's console.
pub struct Console {
    pub(crate) project: Project,
    pub(crate) backend: Arc<dyn ConsoleBackend>,
    pub(crate) sessions: SessionTable,
    pub(crate) links: LoginLinks,
    pub(crate) comparisons: ComparisonTable,
    pub(crate) port: u16,
    pub(crate) signing: ConsoleSigning,
}

impl Console {
    /// The console of a project.
    pub fn new(
        project: Project,
        backend: Arc<dyn ConsoleBackend>,
        options: ConsoleOptions,
    ) -> Self {
        Self {
            links: LoginLinks::new(project.folder()),
            project,
            backend,
            sessions: SessionTable::default(),
            comparisons: ComparisonTable::default(),
            port: options.port,
            signing: options.signing,
        }
    }

    /// Issues a one-time sign-in link for `who`, as a URL.
    pub fn link(&self, who: &str) -> Result<String, LinkError> {
        let address = format!("127.0.0.1:{}", self.port);
        self.links.announce(&address)?;
        let code = self.links.issue(who, self.now())?;
        Ok(format!("http://{address}/login?code={code}"))
    }

    /// The name of the session cookie. It contains the port, because browsers send cookies to every
    /// port of a host.
    pub(crate) fn cookie(&self) -> String {
        format!("wayleave_console_{}", self.port)
    }

    #[expect(
        clippy::unused_self,
        reason = "the console's own clock, should it get one"
    )]
    pub(crate) fn now(&self) -> Millis {
        SystemClock.now()
    }
}
