//! What happens to people who keep offsets, each case named by its number: scripts with the right answer.

mod broker;
mod commits;
mod names;
mod nasty;
mod rollback;
