//! Workups as a caller sees them, over real SQLite files with planted facts.

mod citations;
mod facts;
mod fixture;
mod granted;
mod hostile;
mod limits;
mod load;
mod meaning;
mod mutation;
mod tools;
