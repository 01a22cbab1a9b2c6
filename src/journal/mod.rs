//! The journal's files: the only place that knows sled and bytes.

pub mod codec;

pub mod store;
