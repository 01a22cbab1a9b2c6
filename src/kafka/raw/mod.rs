//! librdkafka's functions, each in the smallest wrapper that makes it safe.

mod admin;
mod error;
mod handle;
mod list;
mod message;
mod pending;
mod reader;

pub(super) use self::error::Code;
pub(super) use self::handle::{Handle, is_property};
pub(super) use self::list::PartitionList;
pub(super) use self::message::{Headers, Message};
use self::pending::Pending;
pub(super) use self::pending::{Described, Listed};
pub(super) use self::reader::{Event, Reader};
