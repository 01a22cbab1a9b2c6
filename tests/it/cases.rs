//! What happens to people who keep offsets, each case under its number where it has one: scripts with the right answer.

mod commits;
mod expired;
mod holes;
mod limits;
mod looks;
mod moves;
mod names;
mod plans;
mod rollback;
mod worlds;
