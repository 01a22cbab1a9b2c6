//! The HTTP API (INTERFACE sections 2 and 3): as a table of requests and answers in process, and over real sockets.

mod access;
mod batches;
mod cases;
pub mod entries;
mod events;
mod groups;
mod hostile;
mod limits;
mod listeners;
mod looks;
mod losses;
pub mod manners;
mod metrics;
mod moves;
mod polls;
mod positions;
mod readers;
mod rollback;
pub mod sockets;
mod start;
mod steer;
mod stop;
pub mod table;
pub mod world;
