//! The mapped files. Each is opened while the process lives, identified, and read for unwinding once.

use super::lib_source::LibSource;
use super::mapping_kind::{is_dump, is_file};
use super::module::{Bytes, Module};
use super::recorded_files::{Files, RecordedFiles};
use super::shared::{Key, SharedModules, Users, key_of};
use super::{memfd, memory_image, vdso};
use crate::event::{Mapping, Pid};
use crate::files::opened::user_of;
use crate::files::view::{FileOwner, MountView};
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::jit::id::DumpId;
use crate::jit::map_file::MapFile;
use crate::jit::side_file_notes::SideFileNotes;
use crate::jit::symbols::JitSymbols;
use crate::module_index::ModuleIndex;
use crate::targets::Targets;
use crate::targets::access::DumpAccess;
use nyquist_object::{Architecture, Avma, BuildId};
use nyquist_perf::{Budget, Charge, PerfMap, PerfMapEntry};
use nyquist_system::HeldFile;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most bytes of files that are kept because they cannot be opened any more.
const MAX_BYTES_IN_MEMORY: usize = 256 << 20;

/// An estimate of the memory of what is known of a file, besides its name.
const MODULE_BYTES: usize = size_of::<Module>() + 256;

/// How many copies there are of a file's name.
const NAMES: usize = 3;

/// All files that were mapped, each once.
#[derive(Debug, Default)]
pub(crate) struct ModuleStore {
    files: Arc<Files>,
    /// The modules that this store and those beside it have opened.
    shared: Arc<SharedModules>,
    modules: Vec<Arc<Module>>,
    /// The names of code that appeared in the kernel while it ran, and the libs made of it.
    kernel_code: PerfMap,
    kernel_windows: FxHashMap<Avma, ModuleIndex>,
    /// The modules for code of processes that nothing names, by their base addresses.
    unnamed_windows: FxHashMap<Avma, ModuleIndex>,
    known: FxHashMap<Key, ModuleIndex>,
    /// The indices of modules, by the addresses of the modules in memory.
    places: FxHashMap<usize, ModuleIndex>,
    /// How much memory the names in perf maps and jitdumps may take.
    budget: Budget,
    /// What the names of files take of their budget.
    file_names: Charge,
    /// How many mappings are of files beyond that budget.
    left_out: u64,
    /// Messages about these files.
    pub(crate) notes: SideFileNotes,
}

impl ModuleStore {
    /// A store without modules. Files are those of living processes, or of a recording that is read later.
    /// The names in perf maps and jitdumps, and what is read of mapped files at a time, take at most as much memory as
    /// the one budget has, and the names of files as much as the other.
    pub(crate) fn new(
        recorded: Option<RecordedFiles>,
        targets: Targets,
        (budget, file_names): (Budget, &Budget),
    ) -> Self {
        let files = match recorded {
            Some(files) => Files::Recorded(Box::new(files)),
            None => Files::Live(targets, budget.clone()),
        };
        Self { files: Arc::new(files), budget, file_names: file_names.charge(), ..Self::default() }
    }

    /// How much memory the names in perf maps and jitdumps may take.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// An empty store that shares the finder and the opened files with this one. Each file is read once for
    /// both stores.
    pub(crate) fn sharing_files(&self) -> Self {
        Self {
            files: Arc::clone(&self.files),
            shared: Arc::clone(&self.shared),
            file_names: Budget::new(self.file_names.budget().most()).charge(),
            ..Self::default()
        }
    }

    /// Whether temporary files that are named after a process's number belong to that process.
    pub(crate) fn knows_processes(&self) -> bool {
        self.files.knows_processes()
    }

    /// Whether the processes are on this machine, and may be alive.
    pub(crate) fn are_live(&self) -> bool {
        self.targets().is_some()
    }

    /// The access to the processes, if these may be alive.
    pub(crate) fn targets(&self) -> Option<&Targets> {
        match &*self.files {
            Files::Live(targets, _) => Some(targets),
            Files::Recorded(_) => None,
        }
    }

    /// Compiles the unwind information of mapped modules, for all stores that share them.
    pub(crate) fn prepare(&mut self, mapping: &Mapping) {
        if let Some(index) = self.of_mapping(mapping) {
            self.get(index).unwind();
        }
    }

    /// The build ids of the files that this store and those beside it have opened, by their paths.
    pub(crate) fn build_ids(&self) -> Vec<(String, BuildId)> {
        self.shared.build_ids()
    }

    /// The module of a mapping. A file is not opened again if the kernel describes it as one that was opened
    /// before. `None` for memory that no file holds.
    pub(crate) fn of_mapping(&mut self, mapping: &Mapping) -> Option<ModuleIndex> {
        if !self.may_be_module(mapping) {
            return None;
        }
        match self.shared.noted(mapping) {
            Some(module) => self.place(mapping, module),
            None => self.of_new_mapping(mapping),
        }
    }

    /// As [`ModuleStore::of_mapping`], for a mapping that was just made. It uses the process's current view.
    pub(crate) fn of_new_mapping(&mut self, mapping: &Mapping) -> Option<ModuleIndex> {
        if !self.may_be_module(mapping) {
            return None;
        }
        if is_dump(mapping)
            && let Some(index) = self.known_jitdump(mapping, None)
        {
            return Some(index);
        }
        let seen = self.files.process_view(mapping);
        if let Some(module) = self.shared.noted(mapping).filter(|_| seen.is_none()) {
            return self.place(mapping, module);
        }
        let mounts = seen.unwrap_or_default();
        let users = || match mapping.pid.filter(|_| self.are_live()) {
            Some(pid) => user_of(pid).map(Users::One),
            None => Some(Users::All),
        };
        let key = key_of(mapping, mounts, Users::All);
        let has_room = || self.file_names.budget().has(name_bytes(&mapping.path));
        let module = self.shared.module(key, users, || {
            if !has_room() {
                return None;
            }
            let mut module = Module::of_mapping(mapping, &self.files, mounts);
            let has_own_root = mounts != MountView::Ours && matches!(module.bytes, Bytes::File(_));
            let pid = mapping.pid.filter(|_| has_own_root);
            module.root = pid.and_then(|pid| self.targets()?.access().root(pid));
            let is_missing = matches!(module.bytes, Bytes::Missing);
            Some(if is_missing { self.of_process(mapping, module, mounts) } else { module })
        });
        let Some(module) = module else {
            self.left_out += 1;
            return None;
        };
        if self.are_live() {
            self.shared.note(mapping, &module);
        }
        self.place(mapping, module)
    }

    /// Forgets the mappings of a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.shared.forget(pid);
    }

    fn may_be_module(&self, mapping: &Mapping) -> bool {
        let is_known = is_file(&mapping.path)
            || memfd::is_name(&mapping.path)
            || mapping.path == vdso::NAME
            || self.files.states(&mapping.path);
        mapping.pid.is_none() || is_known
    }

    /// The index of the module of a mapping in this store.
    fn place(&mut self, mapping: &Mapping, module: Arc<Module>) -> Option<ModuleIndex> {
        // Just-in-time compilers keep generated code in memory files. So a memory file without a program or
        // library is treated as plain memory.
        let is_memory_file = mapping.pid.is_some() && memfd::is_name(&mapping.path);
        if is_memory_file && matches!(module.bytes, Bytes::Missing) && module.id.is_none() {
            return None;
        }
        let address = Arc::as_ptr(&module).addr();
        if let Some(&index) = self.places.get(&address) {
            return Some(index);
        }
        if !self.file_names.take(name_bytes(&module.path)) {
            self.left_out += 1;
            return None;
        }
        let index = self.add(module)?;
        self.places.insert(address, index);
        Some(index)
    }

    /// A message to the user, if the names of files took too much memory.
    pub(crate) fn file_names_note(&self) -> Option<String> {
        let most = self.file_names.budget().most() >> 20;
        (self.left_out > 0).then(|| {
            format!(
                "{} mappings have no file, because the names of files would take more than {most} MiB of memory (--max-memory allows more)",
                self.left_out
            )
        })
    }

    /// The module of a file that cannot be opened. It is made from the process's memory, or at least from the
    /// mapping's path.
    fn of_process(&self, mapping: &Mapping, missing: Module, mounts: MountView) -> Module {
        let mut module = self.read_memory(mapping).unwrap_or(missing);
        let process = mapping.pid.filter(|_| self.are_live() && module.id.is_some());
        module.owner = process.map(|pid| FileOwner::of_process(pid, mounts));
        module
    }

    /// The module of a file that cannot be opened, as far as its process has loaded it.
    fn read_memory(&self, mapping: &Mapping) -> Option<Module> {
        let (pid, targets) = (mapping.pid?, self.targets()?);
        let most = MAX_BYTES_IN_MEMORY.saturating_sub(self.shared.in_memory.load(Ordering::Relaxed));
        let image = Arc::new(memory_image::read(mapping, (pid, targets), most)?);
        self.shared.in_memory.fetch_add(Vec::len(&image), Ordering::Relaxed);
        Module::of_image(&mapping.path, &image, Bytes::Memory(Arc::clone(&image)))
    }

    /// The module of the file of a mapping, if it was looked for before.
    pub(crate) fn find_opened(&self, mapping: &Mapping) -> Option<ModuleIndex> {
        let module = self.shared.find_opened(mapping)?;
        self.places.get(&Arc::as_ptr(&module).addr()).copied()
    }

    /// The module of a jitdump that a process of this user maps, if it was opened before.
    pub(crate) fn known_jitdump(&self, mapping: &Mapping, user: Option<u32>) -> Option<ModuleIndex> {
        let noted = self.shared.noted(mapping);
        let noted = noted.and_then(|module| self.places.get(&Arc::as_ptr(&module).addr()).copied());
        noted.or_else(|| {
            let mounts = self.files.process_view(mapping).unwrap_or_default();
            self.known.get(&self.jitdump_key(mapping, user, mounts)).copied()
        })
    }

    fn jitdump_key(&self, mapping: &Mapping, user: Option<u32>, mounts: MountView) -> Key {
        let user = mapping.pid.filter(|_| self.are_live()).and_then(user_of).or(user);
        key_of(mapping, mounts, user.map_or(Users::All, Users::One))
    }

    /// The module of the code of a jitdump, and the file. `None` if the file cannot be opened, or is not
    /// trusted for a process of this user. If `unlink`, the file of a living process is removed from its folder.
    pub(crate) fn add_jitdump(
        &mut self,
        mapping: &Mapping,
        (user, unlink): (Option<u32>, bool),
        dump: (DumpIndex, DumpId),
    ) -> Option<(ModuleIndex, HeldFile)> {
        let mounts = self.files.process_view(mapping).unwrap_or_default();
        let file = match self.files.open_jitdump(mapping, DumpAccess { user, mounts, unlink }) {
            Ok(file) => file,
            Err(why) => {
                self.notes.refused(mapping.pid?, "jitdump", Path::new(&mapping.path), &why);
                return None;
            }
        };
        let owner = mapping.pid.map(FileOwner::alone);
        let bytes = Bytes::JitDump(dump.0, dump.1);
        let module = Module::of_made_code(&mapping.path, bytes, owner);
        let module = Arc::new(module);
        if self.are_live() {
            self.shared.note(mapping, &module);
        }
        let key = self.jitdump_key(mapping, user, mounts);
        let index = self.place(mapping, module)?;
        self.known.insert(key, index);
        Some((index, file))
    }

    /// The architecture of the programs: that of the first file whose architecture is known.
    pub(crate) fn architecture(&self) -> Architecture {
        let known = self.modules.iter().find_map(|module| module.architecture());
        known.unwrap_or_else(Architecture::own)
    }

    /// A module for the code that a process's perf map names from `base` on.
    pub(crate) fn add_perf_map(&mut self, map: &Arc<MapFile>, pid: Pid, base: Avma) -> Option<ModuleIndex> {
        let (bytes, owner) = (Bytes::PerfMap(Arc::clone(map), base), Some(FileOwner::alone(pid)));
        // A map that is not there yet may never be there.
        let path = if map.id().is_some() { map.path().to_string_lossy() } else { UNNAMED_CODE.into() };
        self.add(Arc::new(Module::of_made_code(&path, bytes, owner)))
    }

    /// A module for code that a process has made and that nothing names, and its base address. Each 2 GiB of addresses
    /// with such code have one module. `None` if there are too many.
    pub(crate) fn add_unnamed_code(&mut self, address: Avma) -> Option<(ModuleIndex, Avma)> {
        let base = Avma(address.0 & !(CODE_WINDOW - 1));
        if let Some(&index) = self.unnamed_windows.get(&base) {
            return Some((index, base));
        }
        if self.unnamed_windows.len() >= MAX_UNNAMED_WINDOWS {
            return None;
        }
        let index = self.add(Arc::new(Module::of_made_code(UNNAMED_CODE, Bytes::UnnamedCode(base), None)))?;
        self.unnamed_windows.insert(base, index);
        Some((index, base))
    }

    /// The perf map of a process of this user that lives or has just ended. For a recording that is read
    /// later, it is the map that the process has left behind. If `maps_at_end`, the map may not exist yet.
    pub(crate) fn find_perf_map(&self, pid: Pid, user: Option<u32>, maps_at_end: bool) -> Option<MapFile> {
        let path = format!("/tmp/perf-{}.map", pid.0);
        let found = match &*self.files {
            Files::Live(targets, _) => MapFile::find(targets, pid, user, maps_at_end),
            Files::Recorded(files) => {
                files.aux.open(&path).map(|(found, path)| MapFile::left_behind(found.file.into(), path))
            }
        };
        found.inspect_err(|why| self.notes.refused(pid, "perf map", Path::new(&path), why)).ok()
    }

    /// The names in a perf map.
    fn names_in(&self, map: &MapFile, base: Avma) -> LibSource {
        let Ok(names) = map.read(&self.budget) else { return LibSource::Jit(JitSymbols::none(base)) };
        if !names.is_whole() {
            self.notes.is_too_large("perf map", map.path(), self.budget.most());
        }
        LibSource::Jit(JitSymbols::of_map(names, base))
    }

    /// The module for code that appeared in the kernel, and its base address. Each 2 GiB of addresses with
    /// such code have one module. If code replaces other code at an address, the later name is used.
    pub(crate) fn add_kernel_code(
        &mut self,
        start: Avma,
        len: u64,
        name: &str,
    ) -> Option<(ModuleIndex, Avma)> {
        let end = start.0.saturating_add(len);
        self.kernel_code.insert(PerfMapEntry { start: start.0, end, name: name.into() });
        let base = Avma(start.0 & !(CODE_WINDOW - 1));
        if let Some(&index) = self.kernel_windows.get(&base) {
            return Some((index, base));
        }
        let module = Module::of_made_code(KERNEL_CODE, Bytes::KernelCode(base), None);
        let index = self.add(Arc::new(module))?;
        self.kernel_windows.insert(base, index);
        Some((index, base))
    }

    /// Names code that was removed, if it was not known before.
    pub(crate) fn name_gone_kernel_code(&mut self, start: Avma, len: u64, name: &str) {
        let end = start.0.saturating_add(len);
        if start.0 < end && !name.is_empty() && self.kernel_code.find(start.0).is_none() {
            self.kernel_code.insert(PerfMapEntry { start: start.0, end, name: name.into() });
        }
    }

    /// Where the code and the symbols of a module come from.
    pub(crate) fn source(&self, index: ModuleIndex, dumps: &JitDumps) -> LibSource {
        let module = self.get(index);
        match &module.bytes {
            Bytes::KernelCode(base) => {
                LibSource::Jit(JitSymbols::plain(Arc::new(self.kernel_code.clone()), *base))
            }
            Bytes::Kernel(base) => {
                LibSource::Kernel { base: *base, gone: Arc::new(self.kernel_code.clone()) }
            }
            Bytes::PerfMap(map, base) => self.names_in(map, *base),
            _ => module.source(dumps),
        }
    }

    /// As [`ModuleStore::source`], but before the recording ends: only for opened files and for the kernel.
    pub(crate) fn early_source(&self, index: ModuleIndex, dumps: &JitDumps) -> Option<LibSource> {
        let module = self.get(index);
        match module.bytes {
            Bytes::File(_) => Some(module.source(dumps)),
            Bytes::Kernel(base) => Some(LibSource::Kernel { base, gone: Arc::default() }),
            _ => None,
        }
    }

    fn add(&mut self, module: Arc<Module>) -> Option<ModuleIndex> {
        let index = ModuleIndex(u32::try_from(self.modules.len()).ok()?);
        self.modules.push(module);
        Some(index)
    }

    /// The module at an index of this store.
    pub(crate) fn get(&self, index: ModuleIndex) -> &Module {
        &self.modules[index.0 as usize]
    }
}

/// How much memory is kept of a file with this name.
fn name_bytes(path: &str) -> u64 {
    (MODULE_BYTES + NAMES * path.len()) as u64
}

/// The lib of code that appeared in the kernel while it ran.
const KERNEL_CODE: &str = "[kernel code]";

/// The lib of code that a process made while it ran, and that no file names.
const UNNAMED_CODE: &str = "[JIT]";

/// The most libs of such code.
const MAX_UNNAMED_WINDOWS: usize = 4096;

/// The span of a lib of code in memory: relative addresses have 31 bits.
pub(crate) const CODE_WINDOW: u64 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappedFile;
    use nyquist_object::FileOffset;

    fn mapping(path: &str, identity: MappedFile) -> Mapping {
        let pid = Some(Pid(std::process::id()));
        Mapping { pid, start: Avma(0x1000), len: 0x1000, offset: FileOffset(0), path: path.into(), identity }
    }

    /// Mappings of Linux name their file by its inode, and the test program is an ELF file.
    #[cfg(target_os = "linux")]
    mod own_program {
        use super::*;
        use nyquist_object::ModuleId;
        use std::os::unix::fs::MetadataExt as _;

        fn own_binary() -> (String, u64) {
            let path = std::env::current_exe().unwrap();
            let inode = std::fs::metadata(&path).unwrap().ino();
            (path.to_str().unwrap().to_owned(), inode)
        }

        fn inode(inode: u64) -> MappedFile {
            MappedFile::Inode { major: 0, minor: 0, inode, generation: 0 }
        }

        #[test]
        fn a_file_is_opened_and_identified_once() {
            let (path, number) = own_binary();
            let mut store = ModuleStore::default();
            let first = store.of_mapping(&mapping(&path, inode(number))).unwrap();
            assert_eq!(store.of_mapping(&mapping(&path, inode(number))), Some(first));
            let lib = store.get(first).lib();
            assert_eq!(lib.path, path);
            assert_eq!(lib.breakpad_id.len(), 33);
            assert_eq!(lib.arch.as_deref(), Some("x86_64"));
            assert!(store.get(first).unwind().is_some());
        }

        #[test]
        fn mapped_files_are_read_within_the_budget() {
            let (path, number) = own_binary();
            let budgets = (Budget::new(16), &Budget::default());
            let mut store = ModuleStore::new(None, Targets::default(), budgets);
            let module = store.of_mapping(&mapping(&path, inode(number))).unwrap();
            assert!(store.get(module).unwind().is_none());
        }

        #[test]
        fn a_file_of_varying_generation_is_opened_once() {
            let (path, number) = own_binary();
            let mut store = ModuleStore::default();
            // Mappings from before a recording are reported without the inode's generation.
            let [first, second] = [0, 7].map(|generation| {
                let identity = MappedFile::Inode { major: 0, minor: 0, inode: number, generation };
                store.of_mapping(&mapping(&path, identity)).unwrap()
            });
            assert!(std::ptr::eq(store.get(first), store.get(second)));
        }

        #[test]
        fn another_file_at_the_same_path_is_not_used() {
            let (path, number) = own_binary();
            let mut store = ModuleStore::default();
            let other = store.of_mapping(&mapping(&path, inode(number + 1))).unwrap();
            assert!(matches!(store.get(other).source(&JitDumps::default()), LibSource::Unknown));
            assert_eq!(store.get(other).lib().breakpad_id, "");
        }

        #[test]
        fn a_path_has_the_build_id_of_its_only_file() {
            let (path, number) = own_binary();
            let mut store = ModuleStore::default();
            let index = store.of_mapping(&mapping(&path, inode(number))).unwrap();
            let Some(ModuleId::BuildId(id)) = store.get(index).id.clone() else {
                panic!("tests are linked with build ids")
            };
            assert_eq!(store.sharing_files().build_ids(), [(path.clone(), id)]);
            store.of_mapping(&mapping(&path, inode(number + 1)));
            assert_eq!(store.build_ids(), []);
        }
    }

    #[test]
    fn memory_that_no_file_holds_is_no_module() {
        let mut store = ModuleStore::default();
        for path in ["//anon", "[heap]", "[stack]", "/memfd:jit (deleted)", ""] {
            assert_eq!(store.of_mapping(&mapping(path, MappedFile::Unknown)), None, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_no_object_keeps_its_name() {
        let mut store = ModuleStore::default();
        let index = store.of_mapping(&mapping("/etc/passwd", MappedFile::Unknown)).unwrap();
        assert_eq!(store.get(index).lib().name, "passwd");
        assert!(store.get(index).unwind().is_none());
    }
}
