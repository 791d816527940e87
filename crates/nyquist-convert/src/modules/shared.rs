//! The modules that several stores share. Each file is opened once, for all processes for which it is
//! trusted.

use super::module::{Bytes, FileState, Module};
use crate::event::{MappedFile, Mapping, Pid};
use crate::files::view::{FileOwner, MountView};
use nyquist_object::{BuildId, ModuleId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kernel's description of a mapped file, and the processes for which it means the same file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The processes that see the same files at paths.
    mounts: MountView,
    users: Users,
    identity: MappedFile,
    path: String,
}

/// The users of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Users {
    All,
    One(u32),
}

/// The most modules of mappings that are noted for all processes. Others are looked for at their turn.
const MAX_NOTED: usize = 1 << 20;

/// The modules that several stores share.
#[derive(Debug, Default)]
pub(super) struct SharedModules {
    modules: Mutex<Modules>,
    noted: Mutex<Noted>,
    /// The number of bytes that are kept of files that cannot be opened any more.
    pub(super) in_memory: AtomicUsize,
}

/// The modules of mappings that were found while their processes lived, by hashes of the kernel's
/// descriptions.
#[derive(Debug, Default)]
struct Noted {
    by_process: FxHashMap<Pid, FxHashMap<u64, Arc<Module>>>,
    /// The number of modules of all processes.
    count: usize,
}

/// Modules by the kernel's descriptions, and by the files that they were read from. The kernel may describe
/// one file in several ways.
#[derive(Debug, Default)]
struct Modules {
    by_key: FxHashMap<Key, Arc<Module>>,
    by_file: FxHashMap<(FileState, String), Arc<Module>>,
}

impl SharedModules {
    fn modules(&self) -> MutexGuard<'_, Modules> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The build ids of the files, by the paths that they were mapped from. A path that several files had is
    /// left out.
    pub(super) fn build_ids(&self) -> Vec<(String, BuildId)> {
        let modules = self.modules();
        let mut ids: BTreeMap<&str, Option<&BuildId>> = BTreeMap::new();
        for (key, module) in &modules.by_key {
            let id = match (&module.bytes, &module.id) {
                (Bytes::File(_), Some(ModuleId::BuildId(id))) => Some(id),
                _ => None,
            };
            ids.entry(&key.path)
                .and_modify(|known| *known = known.filter(|known| Some(*known) == id))
                .or_insert(id);
        }
        ids.into_iter().filter_map(|(path, id)| Some((path.to_owned(), id?.clone()))).collect()
    }

    /// The module of a file. The file is opened if no store has opened it yet for the user of the process, or
    /// for all users. `None` if it is not to be opened.
    pub(super) fn module(
        &self,
        key: Key,
        users: impl FnOnce() -> Option<Users>,
        open: impl FnOnce() -> Option<Module>,
    ) -> Option<Arc<Module>> {
        let mut modules = self.modules();
        if let Some(module) = modules.by_key.get(&key) {
            return Some(Arc::clone(module));
        }
        let own = users().map(|users| Key { users, ..key.clone() });
        if let Some(module) = own.as_ref().and_then(|own| modules.by_key.get(own)) {
            return Some(Arc::clone(module));
        }
        let opened = Arc::new(open()?);
        let module = match opened.file_state() {
            Some(state) => {
                let same = modules.by_file.entry((state, opened.path.clone())).or_insert(opened);
                Arc::clone(same)
            }
            None => opened,
        };
        let is_for_all =
            matches!(module.bytes, Bytes::File(_)) && module.owner.is_some_and(FileOwner::is_trusted_for_all);
        if let Some(key) = if is_for_all { Some(key) } else { own } {
            modules.by_key.insert(key, Arc::clone(&module));
        }
        Some(module)
    }

    /// The module of a file that was opened for all processes that have our own view.
    pub(super) fn find_opened(&self, mapping: &Mapping) -> Option<Arc<Module>> {
        self.modules().by_key.get(&key_of(mapping, MountView::Ours, Users::All)).cloned()
    }

    /// The module of a mapping, found while its process lived.
    pub(super) fn noted(&self, mapping: &Mapping) -> Option<Arc<Module>> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.by_process.get(&mapping.pid?)?.get(&hash_of(mapping)).cloned()
    }

    /// Notes the module of a mapping.
    pub(super) fn note(&self, mapping: &Mapping, module: &Arc<Module>) {
        let Some(pid) = mapping.pid else { return };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let Noted { by_process, count } = &mut *noted;
        if *count < MAX_NOTED {
            let before = by_process.entry(pid).or_default().insert(hash_of(mapping), Arc::clone(module));
            *count += usize::from(before.is_none());
        }
    }

    /// Forgets the mappings of a process that has ended.
    pub(super) fn forget(&self, pid: Pid) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = noted.by_process.remove(&pid).map_or(0, |modules| modules.len());
        noted.count -= forgotten;
    }
}

/// The key of the file of a mapping, for processes with this view and these users.
pub(super) fn key_of(mapping: &Mapping, mounts: MountView, users: Users) -> Key {
    Key { mounts, users, identity: mapping.identity.clone(), path: mapping.path.clone() }
}

/// Mappings of one process with the same hash are treated as the same. A process that causes a collision
/// harms only its own symbols.
fn hash_of(mapping: &Mapping) -> u64 {
    FxBuildHasher.hash_one((&mapping.identity, &mapping.path))
}
