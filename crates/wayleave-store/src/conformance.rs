//! The suite every adapter runs.
