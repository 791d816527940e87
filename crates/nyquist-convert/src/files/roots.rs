//! The root folders of processes whose root differs from ours. Debug files of their files are looked for
//! there.

use crate::event::Pid;
use nyquist_system::{FileId, OpenRoot, path_id};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The most root folders that are held.
const MAX_ROOTS: usize = 64;

/// The known root folders. Each is held open once, so that files in it can be opened after its processes have
/// ended.
#[derive(Debug, Default)]
pub(crate) struct ProcessRoots(Mutex<FxHashMap<RootId, OpenRoot>>);

/// The identities of a root folder, and of the mount namespace that it is seen in.
type RootId = [FileId; 2];

impl ProcessRoots {
    /// The root of a process. `None` if it is ours, or cannot be opened.
    pub(crate) fn of(&self, pid: Pid) -> Option<OpenRoot> {
        let id = id_of(&pid.0.to_string()).filter(|id| Some(*id) != id_of("self"))?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = known.get(&id) {
            return Some(root.clone());
        }
        let root = OpenRoot::of_process(pid.0).ok().filter(|_| known.len() < MAX_ROOTS)?;
        known.insert(id, root.clone());
        Some(root)
    }
}

fn id_of(process: &str) -> Option<RootId> {
    let id = |name: &str| path_id(&Path::new("/proc").join(process).join(name)).ok();
    Some([id("root")?, id("ns/mnt")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_root_is_no_other() {
        let roots = ProcessRoots::default();
        assert!(roots.of(Pid(std::process::id())).is_none());
        assert!(roots.of(Pid(u32::MAX)).is_none());
    }
}
