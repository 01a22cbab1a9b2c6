//! All integration tests in one binary, a module a subject.

mod crash;
mod model;
mod tidy;
