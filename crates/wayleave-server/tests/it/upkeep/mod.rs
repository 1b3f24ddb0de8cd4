//! Changes under a running deployment: of its sources' tables, and of its settings.

mod drift;
mod drift_ways;
mod settings;
