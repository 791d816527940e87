//! The files that were mapped: opened while the process lives, identified, and read for unwinding once.

use crate::event::{MappedFile, Mapping, Pid};
use crate::jit::{DumpIndex, JitDumps, JitSymbols, MapFile};
use crate::memfd;
use crate::memory_image;
use crate::process_root::ProcessRoots;
use crate::recorded_files::Files;
use crate::replaced_text::is_memory;
use crate::side_file::{Found, Refusal, Root, open_regular, own_user, user_of};
use crate::side_news::SideNews;
use crate::stated_symbols::StatedSymbols;
use crate::vdso;
use nyquist_object::Avma;
use nyquist_object::elf::{Architecture, Segment};
use nyquist_object::{
    BuildId, ByteSource, Elf, FileIdentity, FileSource, MappedModule, ModuleId, OpenRoot, Svma,
};
use nyquist_perf::{Budget, PerfMap, PerfMapEntry};
use nyquist_profile::Lib;
use nyquist_symbols::{ModuleRequest, OpenFile};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The place of a module in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleIndex(u32);

/// Where the code and the symbols of a lib come from.
#[derive(Clone, Debug)]
pub enum LibSource {
    /// A file, and how to find it and its debug files.
    File(ModuleRequest),
    /// An image that is no file: the vDSO, or what is left of a file in memory.
    Image(Arc<Vec<u8>>),
    /// The kernel or one of its modules.
    Kernel {
        /// Where its addresses count from.
        base: Avma,
        /// The names of code that is not there any more, by its addresses in memory.
        gone: Arc<PerfMap>,
    },
    /// Code that was made while the program ran, and what its compiler says of it.
    Jit(JitSymbols),
    /// Nothing is known of the file but its name.
    Unknown,
}

/// One mapped file.
#[derive(Debug)]
pub(crate) struct Module {
    path: String,
    id: Option<ModuleId>,
    architecture: Option<Architecture>,
    segments: Vec<Segment>,
    image_base: Svma,
    bytes: Bytes,
    /// The root of the process that it was opened for, where that is another than ours.
    root: Option<OpenRoot>,
    unwind: OnceLock<Option<Arc<nyquist_unwind::Module>>>,
}

#[derive(Debug)]
enum Bytes {
    File(Arc<FileSource>),
    Image(Arc<Vec<u8>>),
    /// What a process has loaded of a file that nobody can open any more.
    Memory(Arc<Vec<u8>>),
    Kernel(Avma),
    JitDump(DumpIndex),
    /// A perf map, and the address from which the lib counts.
    PerfMap(Arc<MapFile>, Avma),
    /// Code that appeared in the kernel while it ran, and the address from which the lib counts.
    KernelCode(Avma),
    /// A file that is not here, but whose functions the recording states; and the stated address from which the lib
    /// counts.
    Stated(StatedSymbols, u64),
    /// A kernel that does not run here.
    OtherKernel(Avma),
    Missing,
}

/// The most bytes of files that are kept because nobody can open them any more.
const MOST_IN_MEMORY: usize = 256 << 20;

/// All files that were mapped, each once.
#[derive(Debug, Default)]
pub(crate) struct ModuleStore {
    files: Arc<Files>,
    /// What this store and those beside it have opened.
    opened: Arc<Opened>,
    modules: Vec<Arc<Module>>,
    /// The names of code that appeared in the kernel while it ran, and the libs made of it.
    kernel_code: PerfMap,
    kernel_windows: FxHashMap<Avma, ModuleIndex>,
    known: FxHashMap<Key, ModuleIndex>,
    /// How much memory the names in perf maps and jitdumps may take.
    budget: Budget,
    /// What there is to say of these files.
    pub(crate) news: SideNews,
}

/// What the kernel says of a mapped file.
type Key = (MappedFile, String);

/// The modules that several stores share.
#[derive(Debug, Default)]
struct Opened {
    modules: Mutex<Modules>,
    roots: ProcessRoots,
    /// The bytes that are kept of files that nobody can open any more.
    in_memory: AtomicUsize,
}

/// Modules by what the kernel says of them, and by the files that they were read from: of one file it may say this or that.
#[derive(Debug, Default)]
struct Modules {
    by_key: FxHashMap<Key, Arc<Module>>,
    by_file: FxHashMap<(FileState, String), Arc<Module>>,
}

/// A file as it was when it was opened: device, inode, size, and when it was changed last, in seconds and nanoseconds.
type FileState = (u64, u64, u64, i64, i64);

impl Opened {
    /// The build ids of the files, by the paths that they were mapped from. Of a path that several files had there is none.
    fn build_ids(&self) -> Vec<(String, BuildId)> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids: BTreeMap<&str, Option<&BuildId>> = BTreeMap::new();
        for ((_, path), module) in &modules.by_key {
            let id = match (&module.bytes, &module.id) {
                (Bytes::File(_), Some(ModuleId::BuildId(id))) => Some(id),
                _ => None,
            };
            ids.entry(path)
                .and_modify(|known| *known = known.filter(|known| Some(*known) == id))
                .or_insert(id);
        }
        ids.into_iter().filter_map(|(path, id)| Some((path.to_owned(), id?.clone()))).collect()
    }

    /// The module of a mapping, which is opened if none of the stores has done that yet.
    fn module(&self, key: &Key, open: impl FnOnce() -> Module) -> Arc<Module> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.by_key.get(key) {
            return Arc::clone(module);
        }
        let opened = Arc::new(open());
        let module = match opened.file_state() {
            Some(state) => {
                let same = modules.by_file.entry((state, opened.path.clone())).or_insert(opened);
                Arc::clone(same)
            }
            None => opened,
        };
        modules.by_key.insert(key.clone(), Arc::clone(&module));
        module
    }
}

impl ModuleStore {
    /// Looks for files there.
    pub(crate) fn look_in(&mut self, files: Files) {
        self.files = Arc::new(files);
    }

    /// How much memory the names in perf maps and jitdumps may take.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Names in perf maps and jitdumps take no more memory than that.
    pub(crate) fn limit(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// An empty store that shares with this one what is looked for and what was opened: a file is read once for both.
    pub(crate) fn beside(&self) -> Self {
        Self { files: Arc::clone(&self.files), opened: Arc::clone(&self.opened), ..Self::default() }
    }

    /// Whether what processes leave in folders for temporary files, by their numbers, is theirs.
    pub(crate) fn knows_processes(&self) -> bool {
        self.files.knows_processes()
    }

    /// Whether the processes are those of this machine, and may be alive.
    pub(crate) fn are_live(&self) -> bool {
        matches!(*self.files, Files::Live)
    }

    /// Compiles the unwind information of what is mapped, for all stores that share it.
    pub(crate) fn prepare(&mut self, mapping: &Mapping) {
        if let Some(index) = self.of_mapping(mapping) {
            self.get(index).unwind();
        }
    }

    /// The build ids of the files that this store and those beside it have opened, by their paths.
    pub(crate) fn build_ids(&self) -> Vec<(String, BuildId)> {
        self.opened.build_ids()
    }

    /// The module of a mapping. A file that was seen before, by what the kernel says of it, is not opened
    /// again. `None` for memory that no file holds.
    pub(crate) fn of_mapping(&mut self, mapping: &Mapping) -> Option<ModuleIndex> {
        let is_memory_file = memfd::is_name(&mapping.path);
        let is_known = is_file(&mapping.path)
            || is_memory_file
            || mapping.path == vdso::NAME
            || self.files.states(&mapping.path);
        if mapping.pid.is_some() && !is_known {
            return None;
        }
        let key = (mapping.identity.clone(), mapping.path.clone());
        if let Some(&index) = self.known.get(&key) {
            return Some(index);
        }
        let module = self.opened.module(&key, || {
            let mut module = Module::of_mapping(mapping, &self.files);
            let is_live_file = self.are_live() && matches!(module.bytes, Bytes::File(_));
            module.root = mapping.pid.filter(|_| is_live_file).and_then(|pid| self.opened.roots.of(pid));
            let is_missing = matches!(module.bytes, Bytes::Missing);
            if is_missing { self.read_memory(mapping).unwrap_or(module) } else { module }
        });
        // Compilers keep the code that they make in memory files: what is no program and no library is memory like any other.
        if is_memory_file && matches!(module.bytes, Bytes::Missing) && module.id.is_none() {
            return None;
        }
        let index = self.add(module)?;
        self.known.insert(key, index);
        Some(index)
    }

    /// The module of a file that cannot be opened, as far as its process has loaded it.
    fn read_memory(&self, mapping: &Mapping) -> Option<Module> {
        let pid = mapping.pid.filter(|_| self.are_live())?;
        let most = MOST_IN_MEMORY.saturating_sub(self.opened.in_memory.load(Ordering::Relaxed));
        let image = Arc::new(memory_image::read(mapping, pid, most)?);
        self.opened.in_memory.fetch_add(Vec::len(&image), Ordering::Relaxed);
        Module::of_image(&mapping.path, &image, Bytes::Memory(Arc::clone(&image)))
    }

    /// The module of the file of a mapping, or of a jitdump, that was looked for before.
    pub(crate) fn known(&self, mapping: &Mapping) -> Option<ModuleIndex> {
        self.known.get(&(mapping.identity.clone(), mapping.path.clone())).copied()
    }

    /// The module that stands for the code of a jitdump, and the file; `None` where the file cannot be opened, or is not
    /// to be believed of a process of that user.
    pub(crate) fn add_jitdump(
        &mut self,
        mapping: &Mapping,
        user: Option<u32>,
        dump: DumpIndex,
    ) -> Option<(ModuleIndex, Found)> {
        let file = match self.files.open_jitdump(mapping, user) {
            Ok(file) => file,
            Err(why) => {
                self.news.refused(mapping.pid?, "jitdump", Path::new(&mapping.path), &why);
                return None;
            }
        };
        let key = (mapping.identity.clone(), mapping.path.clone());
        if let Some(&index) = self.known.get(&key) {
            return Some((index, file));
        }
        let module = Module { bytes: Bytes::JitDump(dump), ..Module::missing(&mapping.path) };
        let index = self.add(Arc::new(module))?;
        self.known.insert(key, index);
        Some((index, file))
    }

    /// A module for the code that a perf map names from `base` on.
    pub(crate) fn add_perf_map(&mut self, map: &Arc<MapFile>, base: Avma) -> Option<ModuleIndex> {
        let bytes = Bytes::PerfMap(Arc::clone(map), base);
        self.add(Arc::new(Module { bytes, ..Module::missing(&map.path().to_string_lossy()) }))
    }

    /// The perf map of a process that lives, or has just ended, and is that user's; of a recording that is read later, the
    /// one that it has left behind. It may not be there yet where `maps_at_end`.
    pub(crate) fn find_perf_map(&self, pid: Pid, user: Option<u32>, maps_at_end: bool) -> Option<MapFile> {
        let path = format!("/tmp/perf-{}.map", pid.0);
        let found = match &*self.files {
            Files::Live => MapFile::find(pid, user, maps_at_end),
            Files::Recorded(files) => {
                files.aux.open(&path).map(|(found, path)| MapFile::left_behind(found.file, path))
            }
        };
        found.inspect_err(|why| self.news.refused(pid, "perf map", Path::new(&path), why)).ok()
    }

    /// The names in a perf map.
    fn names_in(&self, map: &MapFile, base: Avma) -> LibSource {
        let Ok(names) = map.read(&self.budget) else { return LibSource::Unknown };
        if !names.is_whole() {
            self.news.is_too_large("perf map", map.path(), self.budget.most());
        }
        LibSource::Jit(JitSymbols::of_map(names, base))
    }

    /// The module for code that appeared in the kernel, and where its addresses count from: one for each 2 GiB that have
    /// such code. Of code that takes the place of other, the name is the later one's.
    pub(crate) fn add_kernel_code(
        &mut self,
        start: Avma,
        len: u64,
        name: &str,
    ) -> Option<(ModuleIndex, Avma)> {
        /// What can be said with the 31 bits of a relative address.
        const WINDOW: u64 = 1 << 31;
        let end = start.0.saturating_add(len);
        self.kernel_code.insert(PerfMapEntry { start: start.0, end, name: name.into() });
        let base = Avma(start.0 & !(WINDOW - 1));
        if let Some(&index) = self.kernel_windows.get(&base) {
            return Some((index, base));
        }
        let module = Module { bytes: Bytes::KernelCode(base), ..Module::missing(KERNEL_CODE) };
        let index = self.add(Arc::new(module))?;
        self.kernel_windows.insert(base, index);
        Some((index, base))
    }

    /// Names code that went away, where nothing was heard of it before.
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

    /// As [`ModuleStore::source`] of a file that was opened, or of the kernel: what is known of them before the recording ends.
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

/// The lib of code that appeared in the kernel while it ran.
const KERNEL_CODE: &str = "[kernel code]";

/// Whether a mapping is of memory that no file holds, and that the kernel has not made.
pub(crate) fn is_without_file(mapping: &Mapping) -> bool {
    !is_file(&mapping.path) && !mapping.path.starts_with('[')
}

/// Whether the path of a mapping is that of a file, and not a name such as `//anon` or `[heap]`.
fn is_file(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && !path.starts_with("/dev/zero")
        && !is_memory(path)
        && !memfd::is_name(path)
        && !path.starts_with("/SYSV")
}

impl Module {
    fn of_mapping(mapping: &Mapping, files: &Files) -> Self {
        let id = files.id_of(mapping);
        if mapping.pid.is_none() {
            return Self::stated(mapping, id.as_ref(), files)
                .unwrap_or_else(|| Self::kernel(mapping, id, files));
        }
        if mapping.path == vdso::NAME {
            return Self::vdso(mapping, id.as_ref(), files);
        }
        let read = files.open(mapping, id.as_ref()).and_then(|source| Self::read(&mapping.path, source));
        let stated = || Self::stated(mapping, id.as_ref(), files);
        let missing = || Self { id: id.clone().map(ModuleId::BuildId), ..Self::missing(&mapping.path) };
        read.or_else(stated).unwrap_or_else(missing)
    }

    fn stated(mapping: &Mapping, id: Option<&BuildId>, files: &Files) -> Option<Self> {
        let symbols = files.stated_symbols(&mapping.path)?;
        let (_, first) = symbols.base(mapping);
        let bytes = Bytes::Stated(symbols.clone(), first);
        Some(Self { id: id.cloned().map(ModuleId::BuildId), bytes, ..Self::missing(&mapping.path) })
    }

    fn missing(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            id: None,
            architecture: None,
            segments: Vec::new(),
            image_base: Svma(0),
            bytes: Bytes::Missing,
            root: None,
            unwind: OnceLock::new(),
        }
    }

    fn kernel(mapping: &Mapping, id: Option<BuildId>, files: &Files) -> Self {
        let running = files.is_running_kernel(id.as_ref());
        let bytes = if running { Bytes::Kernel(mapping.start) } else { Bytes::OtherKernel(mapping.start) };
        Self { id: id.map(ModuleId::BuildId), bytes, ..Self::missing(&mapping.path) }
    }

    fn vdso(mapping: &Mapping, id: Option<&BuildId>, files: &Files) -> Self {
        let missing = Self { id: id.cloned().map(ModuleId::BuildId), ..Self::missing(&mapping.path) };
        let Some(image) = vdso::image() else { return missing };
        let Some(module) = Self::of_image(&mapping.path, &image, Bytes::Image(Arc::clone(&image))) else {
            return missing;
        };
        let is_this = match id {
            Some(id) => module.id == Some(ModuleId::BuildId(id.clone())),
            None => files.is_running_kernel(None),
        };
        if is_this { module } else { missing }
    }

    /// The module of an image that is no file.
    fn of_image(path: &str, image: &Arc<Vec<u8>>, bytes: Bytes) -> Option<Self> {
        let elf = Elf::open(image.as_slice()).ok()?;
        Some(Self {
            id: elf.build_id().map(ModuleId::BuildId),
            architecture: Some(elf.architecture()),
            segments: elf.segments().to_vec(),
            image_base: elf.image_base(),
            bytes,
            ..Self::missing(path)
        })
    }

    fn read(path: &str, source: Arc<FileSource>) -> Option<Self> {
        let metadata = source.file().metadata().ok()?;
        let elf = Elf::open(Arc::clone(&source)).ok()?;
        let id = match elf.build_id() {
            Some(id) => ModuleId::BuildId(id),
            None => ModuleId::File(FileIdentity {
                device: metadata.dev(),
                inode: metadata.ino(),
                size: metadata.size(),
                modified_ns: metadata
                    .mtime()
                    .saturating_mul(1_000_000_000)
                    .saturating_add(metadata.mtime_nsec()),
                text_hash: elf.text_hash().ok()?,
            }),
        };
        Some(Self {
            id: Some(id),
            architecture: Some(elf.architecture()),
            segments: elf.segments().to_vec(),
            image_base: elf.image_base(),
            bytes: Bytes::File(source),
            ..Self::missing(path)
        })
    }

    /// The file that the module was read from, as it is now.
    fn file_state(&self) -> Option<FileState> {
        let Bytes::File(source) = &self.bytes else { return None };
        let file = source.file().metadata().ok()?;
        Some((file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
    }

    /// Where the image base is, given a mapping of the module.
    pub(crate) fn base(&self, mapping: &Mapping) -> Avma {
        let start = mapping.start;
        match &self.bytes {
            Bytes::Kernel(base) | Bytes::OtherKernel(base) => *base,
            Bytes::Stated(symbols, _) => symbols.base(mapping).0,
            // The vDSO's mapping shows the whole image.
            Bytes::Image(_) => start,
            // Of a missing file the offset in the file is the best address that there is.
            Bytes::Missing | Bytes::JitDump(_) | Bytes::PerfMap(..) | Bytes::KernelCode(_) => {
                Avma(start.0.wrapping_sub(mapping.offset.0))
            }
            Bytes::File(_) | Bytes::Memory(_) => {
                let mapped = MappedModule::from_mapping(
                    &self.segments,
                    self.image_base,
                    start,
                    mapping.offset,
                    mapping.len,
                );
                mapped.map_or(Avma(start.0.wrapping_sub(mapping.offset.0)), |mapped| mapped.base)
            }
        }
    }

    /// The tables by which the module's frames are unwound; compiled at the first call.
    pub(crate) fn unwind(&self) -> Option<Arc<nyquist_unwind::Module>> {
        let compile = || match &self.bytes {
            Bytes::File(source) => compile(Arc::clone(source)),
            Bytes::Image(image) | Bytes::Memory(image) => compile(Arc::clone(image)),
            Bytes::Kernel(_)
            | Bytes::OtherKernel(_)
            | Bytes::KernelCode(_)
            | Bytes::Stated(..)
            | Bytes::JitDump(_)
            | Bytes::PerfMap(..)
            | Bytes::Missing => None,
        };
        self.unwind.get_or_init(compile).clone()
    }

    /// Copies the module's instructions from an address on, given where its image base is, and says how many bytes there
    /// are.
    pub(crate) fn read_code(&self, base: Avma, address: Avma, out: &mut [u8]) -> usize {
        let svma = address.0.wrapping_sub(base.0).wrapping_add(self.image_base.0);
        let place = self.segments.iter().find_map(|segment| {
            let into = svma.checked_sub(segment.address.0).filter(|into| *into < segment.file_size)?;
            Some((segment.offset.0.checked_add(into)?, segment.file_size - into))
        });
        let Some((offset, left)) = place else { return 0 };
        let len = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let Some(out) = out.get_mut(..len) else { return 0 };
        let read = match &self.bytes {
            Bytes::File(source) => source.read_exact_at(offset, out).is_ok(),
            Bytes::Image(image) | Bytes::Memory(image) => image.as_slice().read_exact_at(offset, out).is_ok(),
            Bytes::Kernel(_)
            | Bytes::OtherKernel(_)
            | Bytes::KernelCode(_)
            | Bytes::Stated(..)
            | Bytes::JitDump(_)
            | Bytes::PerfMap(..)
            | Bytes::Missing => false,
        };
        if read { len } else { 0 }
    }

    /// The module as the profile names it.
    pub(crate) fn lib(&self) -> Lib {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        let arch = match self.architecture {
            Some(Architecture::X86_64) => Some("x86_64"),
            Some(Architecture::X86) => Some("x86"),
            Some(Architecture::Aarch64) => Some("arm64"),
            Some(Architecture::Other(_)) | None => None,
        };
        // Libs of the same debug name would be one: a perf map can have several.
        let debug_name = match &self.bytes {
            Bytes::PerfMap(_, base) | Bytes::KernelCode(base) => format!("{name}+{base:#x}", base = base.0),
            _ => name.to_string(),
        };
        Lib {
            name: name.to_string(),
            path: path.to_owned(),
            debug_name,
            debug_path: path.to_owned(),
            breakpad_id: self.id.as_ref().map(|id| id.debug_id().breakpad()).unwrap_or_default(),
            code_id: self.id.as_ref().and_then(ModuleId::code_id),
            arch: arch.map(str::to_owned),
        }
    }

    /// How to find the module's code and symbols while this store lives: the file is held open, so that it is
    /// found also when it is deleted or replaced meanwhile.
    pub(crate) fn source(&self, dumps: &JitDumps) -> LibSource {
        let by_descriptor = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let held = match &self.bytes {
            Bytes::Image(image) | Bytes::Memory(image) => return LibSource::Image(Arc::clone(image)),
            Bytes::Stated(symbols, first) => {
                return LibSource::Jit(JitSymbols::plain(symbols.map(), Avma(*first)));
            }
            Bytes::JitDump(dump) => return dumps.symbols(*dump).map_or(LibSource::Unknown, LibSource::Jit),
            _ if self.id.is_none() => return LibSource::Unknown,
            Bytes::File(source) => {
                Some(OpenFile { path: by_descriptor(source.file()), source: Arc::clone(source) })
            }
            Bytes::Kernel(_)
            | Bytes::OtherKernel(_)
            | Bytes::KernelCode(_)
            | Bytes::PerfMap(..)
            | Bytes::Missing => None,
        };
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        LibSource::File(ModuleRequest {
            path: PathBuf::from(path),
            id: self.id.clone(),
            alternatives: held.iter().map(|held| held.path.clone()).collect(),
            held,
            roots: self.root.iter().cloned().collect(),
            ..ModuleRequest::default()
        })
    }
}

fn compile(source: impl ByteSource + Send + Sync + 'static) -> Option<Arc<nyquist_unwind::Module>> {
    nyquist_unwind::Module::from_shared_elf(Elf::open(source).ok()?).ok().map(Arc::new)
}

/// Opens the file of a mapping, looking where the process itself sees it first. A file that is not the one
/// that was mapped is not used. The kernel has said the path without links: what leads over one now is another file.
pub(crate) fn open_mapped(mapping: &Mapping, pid: Pid) -> Option<File> {
    if memfd::is_name(&mapping.path) {
        return memfd::open_mapped(mapping, pid);
    }
    let is_it = |file: &File| is_same(file, &mapping.identity);
    let path = Path::new(mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path));
    let at_path = |root: Option<Root>| Some(root?.open(path).ok()?.file).filter(is_it);
    // And the program's own from here, without privileges; of what is not known to be that, it would be another.
    let program = || open_regular(Path::new(&format!("/proc/{}/exe", pid.0))).ok();
    at_path(Root::of_process(pid))
        .or_else(|| open_regular(&map_file(mapping, pid)).ok().filter(is_it))
        .or_else(|| at_path(Root::own()))
        .or_else(|| program().filter(|file| mapping.identity != MappedFile::Unknown && is_it(file)))
}

/// Where the kernel has a mapped file, deleted or replaced as it may be, for who has the privilege.
fn map_file(mapping: &Mapping, pid: Pid) -> PathBuf {
    let end = mapping.start.0.saturating_add(mapping.len);
    PathBuf::from(format!("/proc/{}/map_files/{:x}-{end:x}", pid.0, mapping.start.0))
}

/// Opens a jitdump that a process of that user, if it is known, maps: the very file, and one that is to be believed.
pub(crate) fn open_mapped_dump(mapping: &Mapping, pid: Pid, user: Option<u32>) -> Result<Found, Refusal> {
    // Compared in the same terms: on stacked file systems the device that is mapped is another one.
    let number = |file: &File| file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let mapped = open_regular(&map_file(mapping, pid)).ok();
    let is_it = |file: &File| {
        is_same(file, &mapping.identity)
            && mapped.as_ref().is_none_or(|mapped| number(mapped) == number(file))
    };
    let path = Path::new(mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path));
    let mut why = Refusal::Absent;
    let mut found = None;
    for root in [Root::of_process(pid), Root::own()].into_iter().flatten() {
        match root.open(path) {
            Ok(file) if is_it(&file.file) => {
                found = Some(file);
                break;
            }
            Ok(_) if !why.is_worth_telling() => why = Refusal::Other,
            Err(refusal) if !why.is_worth_telling() => why = refusal,
            _ => {}
        }
    }
    let deleted = || mapped.as_ref().and_then(|file| file.try_clone().ok()).filter(is_it);
    let found = found.or_else(|| deleted().map(Found::without_place)).ok_or(why)?;
    found.believed(&[user_of(pid).or(user).unwrap_or_else(own_user)])
}

/// Whether an open file can be the one that the kernel mapped. The device is not compared: on stacked file
/// systems `stat` gives another one than the mapping has.
pub(crate) fn is_same(file: &File, identity: &MappedFile) -> bool {
    match identity {
        MappedFile::Inode { inode, .. } => file.metadata().is_ok_and(|metadata| metadata.ino() == *inode),
        MappedFile::BuildId(id) => {
            let elf = file.try_clone().ok().and_then(|file| Elf::open(FileSource::new(file)).ok());
            elf.and_then(|elf| elf.build_id()).as_ref() == Some(id)
        }
        MappedFile::Unknown => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Avma, FileOffset};

    fn mapping(path: &str, identity: MappedFile) -> Mapping {
        let pid = Some(Pid(std::process::id()));
        Mapping { pid, start: Avma(0x1000), len: 0x1000, offset: FileOffset(0), path: path.into(), identity }
    }

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
    fn a_file_of_which_the_kernel_says_now_this_now_that_is_opened_once() {
        let (path, number) = own_binary();
        let mut store = ModuleStore::default();
        // What is mapped before a recording begins is said without the inode's generation.
        let [first, second] = [0, 7].map(|generation| {
            let identity = MappedFile::Inode { major: 0, minor: 0, inode: number, generation };
            store.of_mapping(&mapping(&path, identity)).unwrap()
        });
        assert!(std::ptr::eq(store.get(first), store.get(second)));
    }

    #[test]
    fn a_path_has_the_build_id_of_its_only_file() {
        let (path, number) = own_binary();
        let mut store = ModuleStore::default();
        let index = store.of_mapping(&mapping(&path, inode(number))).unwrap();
        let Some(ModuleId::BuildId(id)) = store.get(index).id.clone() else {
            panic!("tests are linked with build ids")
        };
        assert_eq!(store.beside().build_ids(), [(path.clone(), id)]);
        store.of_mapping(&mapping(&path, inode(number + 1)));
        assert_eq!(store.build_ids(), []);
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
