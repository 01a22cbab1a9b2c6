//! The table of DESIGN section 5 as tests: a script, and what it prints.

pub mod script;

mod flapping;
mod holes;
mod property;
mod running;
mod verdicts;
