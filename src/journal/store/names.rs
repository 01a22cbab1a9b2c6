//! Short ids of groups, and of topics in each of their incarnations. An id, once given, stays: also that of a seal that was torn means what it says.

use std::collections::HashMap;
use std::hash::Hash;

use serde::de::DeserializeOwned;

use super::disk::Disk;
use super::error::StoreError;
use super::keys;
use super::records::Sealed;
use crate::journal::codec::Topic;
use crate::offset::Group;

/// Names with ids 1, 2, 3 ...
#[derive(Debug)]
pub struct Ids<T> {
    names: Vec<T>,
    ids: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Ids<T> {
    fn new() -> Self {
        Ids { names: Vec::new(), ids: HashMap::new() }
    }

    fn push(&mut self, name: T) -> u32 {
        self.names.push(name.clone());
        let id = self.len();
        self.ids.insert(name, id);
        id
    }

    /// How many there are, which is the newest id.
    pub fn len(&self) -> u32 {
        self.names.len() as u32
    }

    /// The id of `name`.
    pub fn id(&self, name: &T) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// The id of `name`, given now if it has none; whether it is new.
    pub fn give(&mut self, name: &T) -> (u32, bool) {
        match self.id(name) {
            Some(id) => (id, false),
            None => (self.push(name.clone()), true),
        }
    }

    /// The name with `id`.
    pub fn name(&self, id: u32) -> Option<&T> {
        self.names.get((id as usize).checked_sub(1)?)
    }
}

/// The names of the store.
#[derive(Debug)]
pub struct Names {
    /// Of groups. Id 0 stands for entries without a group.
    pub groups: Ids<Group>,
    /// Of topics, each incarnation by itself.
    pub topics: Ids<Topic>,
}

impl Names {
    /// Reads all names; those that `sealed` counts must be there.
    pub fn load(disk: &Disk, sealed: &Sealed) -> Result<Names, StoreError> {
        let groups = load(disk, b"dg", sealed.groups)?;
        Ok(Names { groups, topics: load(disk, b"dt", sealed.topics)? })
    }
}

fn load<T>(disk: &Disk, prefix: &[u8], at_least: u32) -> Result<Ids<T>, StoreError>
where
    T: Clone + Eq + Hash + DeserializeOwned,
{
    let mut ids = Ids::new();
    disk.each_key(keys::prefix(prefix), &mut |key| {
        let name = disk.value(key)?.ok_or_else(|| disk.damaged(keys::describe(key)))?;
        let id = ids.push(name);
        if keys::name_id(key) == Some(id) {
            return Ok(());
        }
        Err(disk.damaged(format!("name {id} is missing")))
    })?;
    if ids.len() < at_least {
        return Err(disk.damaged(format!("name {} is missing", ids.len() + 1)));
    }
    Ok(ids)
}
