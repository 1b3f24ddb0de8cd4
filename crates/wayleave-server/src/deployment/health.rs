//! Whether the served connections answer and fit their mappings, for `wayleave://doctor`.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use wayleave_project::source_probe::{ConnectionDrift, MappingComparison, ProbeError};
use wayleave_surface::resources::doctor::{ConnectionHealth, Doctor};

use super::serving::ServingContext;

impl Doctor for ServingContext {
    fn examine<'a>(
        &'a self,
        connections: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Vec<ConnectionHealth>> {
        Box::pin(async move {
            let (live, state) = (self.live(), self.watch.now());
            let mut comparison = MappingComparison::new(&self.probe, &state);
            let mut found = Vec::new();
            for mapping in live.mappings() {
                let mut own = mapping.connections.iter();
                if !own.any(|it| connections.contains(it.id.as_str())) {
                    continue;
                }
                let dataset = &mapping.dataset.name;
                let fault = live.fault(dataset).map(|_| "not_as_activated");
                let text = String::from_utf8_lossy(mapping.bytes());
                for compared in comparison.compare(mapping, &text, &|_| {}).await {
                    found.push(ConnectionHealth {
                        dataset: dataset.to_string(),
                        reason: reason(&compared).or(fault),
                        connection_id: compared.connection,
                    });
                }
            }
            found
        })
    }
}

fn reason(compared: &ConnectionDrift) -> Option<&'static str> {
    match &compared.drift {
        Ok(_) => compared.is_broken().then_some("drift"),
        Err(ProbeError::Undeclared { .. }) => Some("undeclared"),
        Err(ProbeError::Dsn(_)) => Some("no_dsn"),
        Err(ProbeError::Store { .. }) => Some("unreachable"),
    }
}
