//! Opens the jitdumps of processes: each is a module, whose code the dump describes.

use super::mapping_kind::is_dump;
use super::store::ModuleStore;
use crate::event::Mapping;
use crate::jit::dump::Dump;
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::jit::id::DumpId;
use crate::time_namespace::ahead_ns;
use std::sync::Arc;

/// Opens the jitdump of a mapping, in a process of this user. Compilers map the file so that the recorder
/// learns its path.
pub(crate) fn open(
    dumps: &mut JitDumps,
    mapping: &Mapping,
    user: Option<u32>,
    modules: &mut ModuleStore,
) -> Option<DumpIndex> {
    if !is_dump(mapping) {
        return None;
    }
    if let Some(known) = modules.known_jitdump(mapping, user) {
        return dumps.of_module(known);
    }
    let index = dumps.next_index();
    let id = DumpId::default();
    let how = (user, dumps.are_unlinked());
    let (module, file) = modules.add_jitdump(mapping, how, (index, Arc::clone(&id)))?;
    let live = mapping.pid.zip(modules.targets());
    let ahead_ns = live.map_or(0, |(pid, targets)| ahead_ns(pid, targets));
    let dump = Dump::new(file, module, mapping.pid, modules.budget().charge());
    dumps.add(dump.with_clock_ahead(ahead_ns).with_id(id).of_process(modules.architecture()));
    Some(index)
}
