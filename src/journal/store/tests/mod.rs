//! The store against a plain list of entries and its fold.

mod crash;
mod damage;
mod model;
mod runs;
mod script;

use std::path::Path;

use super::{Sealer, Store, StoreOptions};

fn open(dir: &Path) -> (Store, Sealer) {
    super::open(dir, StoreOptions::default()).unwrap()
}
