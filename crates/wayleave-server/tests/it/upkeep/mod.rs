//! What changes under a running deployment: its sources' tables, and its settings.

mod drift;
mod drift_ways;
mod settings;
