//! librdkafka's functions, each in the smallest wrapper that makes it safe.

mod admin;
mod error;
mod handle;
mod list;
mod message;
mod reader;

pub(super) use self::admin::{Described, Listed};
pub(super) use self::error::Code;
pub(super) use self::handle::Handle;
pub(super) use self::list::PartitionList;
pub(super) use self::message::{Headers, Message};
pub(super) use self::reader::{Event, Reader};
