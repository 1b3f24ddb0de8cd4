//! Workups, as a caller sees them: over real SQLite files, with facts planted to be found.

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
