//! One module: the file, image or generated code of a mapping, and its properties.

use super::lib_source::LibSource;
use super::mapping_kind::is_windows_path;
use crate::event::{MappedFile, Mapping};
use crate::files::identity::without_deleted;
use crate::files::macho;
use crate::files::view::{FileOwner, MountView};
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::jit::id::DumpId;
use crate::jit::map_file::MapFile;
use crate::jit::symbols::JitSymbols;
use crate::modules::provided_symbols::ProvidedSymbols;
use crate::modules::recorded_files::{Files, OpenedSource};
use crate::modules::vdso;
use nyquist_object::elf::{Architecture, ElfSegment};
use nyquist_object::{
    Avma, BuildId, ByteSource, DebugId, Elf, FileIdentity, FileSource, MachUuid, MappedModule, ModuleId, Pe,
    RelativeAddress, Svma,
};
use nyquist_profile::Lib;
use nyquist_symbols::{ModuleRequest, OpenFile};
use nyquist_system::{FileId, OpenRoot, path_of_open};
use nyquist_unwind::rule::Rule;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file as it was when it was opened: its identity, its size, and when it was changed last, in seconds and
/// nanoseconds.
pub(super) type FileState = (FileId, u64, (i64, i64));

/// One mapped file.
#[derive(Debug)]
pub(crate) struct Module {
    pub(super) path: String,
    pub(super) id: Option<ModuleId>,
    architecture: Option<Architecture>,
    segments: Vec<ElfSegment>,
    image_base: Svma,
    /// The name of the PDB of an image of Windows; empty if it names none.
    pdb: String,
    pub(super) bytes: Bytes,
    /// The owner of the file that it was read from.
    pub(super) owner: Option<FileOwner>,
    /// The root folder of the process that it was opened for, if it differs from ours.
    pub(super) root: Option<OpenRoot>,
    unwind: OnceLock<Option<Arc<nyquist_unwind::Module>>>,
}

/// The source of a module's code and symbols.
#[derive(Debug)]
pub(super) enum Bytes {
    File(Arc<FileSource>),
    Image(Arc<Vec<u8>>),
    /// The loaded parts of a file that cannot be opened any more.
    Memory(Arc<Vec<u8>>),
    Kernel(Avma),
    /// A jitdump, and its id once its header has been read.
    JitDump(DumpIndex, DumpId),
    /// A perf map, and the base of the lib's relative addresses.
    PerfMap(Arc<MapFile>, Avma),
    /// Code that appeared in the kernel while it ran, and the base of the lib's relative addresses.
    KernelCode(Avma),
    /// Code that a process made while it ran and that nothing names, and the base of the lib's relative addresses.
    UnnamedCode(Avma),
    /// A file that is not on this machine, but whose functions the recording states, and the stated address
    /// of the lib's base.
    Provided(ProvidedSymbols, u64),
    /// A kernel other than the running one.
    OtherKernel(Avma),
    Missing,
}

impl Module {
    pub(super) fn of_mapping(mapping: &Mapping, files: &Files, mounts: MountView) -> Self {
        let id = files.id_of(mapping);
        // The kernel of Windows and its drivers are files like all others.
        let provided_image = match &mapping.identity {
            MappedFile::Provided(image) => Some(image),
            _ => None,
        };
        if mapping.pid.is_none() && provided_image.is_none() {
            return Self::provided(mapping, id.as_ref(), files)
                .unwrap_or_else(|| Self::kernel(mapping, id, files));
        }
        if mapping.path == vdso::NAME {
            return Self::vdso(mapping, id.as_ref(), files);
        }
        let opened = files.open(mapping, id.as_ref(), mounts);
        let read = opened.and_then(|opened| Self::read(mapping, opened, mounts));
        // The libraries of macOS are in no files of their own.
        let provided_id = match &mapping.identity {
            MappedFile::MachO(id) => Some(ModuleId::MachUuid(*id)),
            MappedFile::Provided(image) => image.module_id(),
            _ => id.clone().map(ModuleId::BuildId),
        };
        let provided = || Self::provided(mapping, id.as_ref(), files);
        let pdb = provided_image.map(|image| image.pdb.clone()).unwrap_or_default();
        let missing = || Self { id: provided_id.clone(), pdb: pdb.clone(), ..Self::missing(&mapping.path) };
        read.or_else(provided).unwrap_or_else(missing)
    }

    fn provided(mapping: &Mapping, id: Option<&BuildId>, files: &Files) -> Option<Self> {
        let symbols = files.provided_symbols(&mapping.path)?;
        let (_, first) = symbols.base(mapping);
        let bytes = Bytes::Provided(symbols.clone(), first);
        Some(Self { id: id.cloned().map(ModuleId::BuildId), bytes, ..Self::missing(&mapping.path) })
    }

    /// A module for code that was generated while its program, or the kernel, ran.
    pub(super) fn of_made_code(path: &str, bytes: Bytes, owner: Option<FileOwner>) -> Self {
        Self { bytes, owner, ..Self::missing(path) }
    }

    fn missing(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            id: None,
            architecture: None,
            segments: Vec::new(),
            image_base: Svma(0),
            pdb: String::new(),
            bytes: Bytes::Missing,
            owner: None,
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

    /// The module of an image that is not a file.
    pub(super) fn of_image(path: &str, image: &Arc<Vec<u8>>, bytes: Bytes) -> Option<Self> {
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

    fn read(mapping: &Mapping, opened: OpenedSource, mounts: MountView) -> Option<Self> {
        let (path, OpenedSource { source, is_here }) = (&mapping.path, opened);
        let owner = FileOwner::of(source.facts().ok()?.ownership.user, is_here, mounts);
        if let MappedFile::MachO(id) = mapping.identity {
            return Self::read_macho(path, source, id, owner);
        }
        let Ok(elf) = Elf::open(Arc::clone(&source)) else { return Self::read_pe(path, source, owner) };
        let id = match elf.build_id() {
            Some(id) => ModuleId::BuildId(id),
            None => ModuleId::File(FileIdentity::of(&source, elf.text_hash().ok()?).ok()?),
        };
        Some(Self {
            id: Some(id),
            architecture: Some(elf.architecture()),
            segments: elf.segments().to_vec(),
            image_base: elf.image_base(),
            owner: Some(owner),
            bytes: Bytes::File(source),
            ..Self::missing(path)
        })
    }

    fn read_pe(path: &str, source: Arc<FileSource>, owner: FileOwner) -> Option<Self> {
        let pe = Pe::open(Arc::clone(&source)).ok()?;
        Some(Self {
            id: Some(ModuleId::Pe(pe.id().ok()?)),
            architecture: Some(pe.architecture()),
            segments: pe.segments(),
            image_base: pe.image_base(),
            pdb: pe.code_view().ok().flatten().map(|view| pdb_name(&view.path)).unwrap_or_default(),
            owner: Some(owner),
            bytes: Bytes::File(source),
            ..Self::missing(path)
        })
    }

    fn read_macho(path: &str, source: Arc<FileSource>, id: MachUuid, owner: FileOwner) -> Option<Self> {
        let file = macho::open(Arc::clone(&source), id)?;
        Some(Self {
            id: Some(ModuleId::MachUuid(id)),
            architecture: Some(file.architecture()),
            segments: macho::segments(&file),
            image_base: file.image_base(),
            owner: Some(owner),
            bytes: Bytes::File(source),
            ..Self::missing(path)
        })
    }

    /// Whether a mapping is of the whole image, as the loaders of Windows and macOS map it: sections are at their
    /// addresses, and not at their places in the file.
    fn is_whole_image(&self, mapping: &Mapping) -> bool {
        matches!(self.id, Some(ModuleId::Pe(_) | ModuleId::MachUuid(_))) && mapping.offset.0 == 0
    }

    /// The owner of the file that the module was read from.
    pub(crate) fn owner(&self) -> Option<FileOwner> {
        self.owner
    }

    /// The file that the module was read from, as it is now.
    pub(super) fn file_state(&self) -> Option<FileState> {
        let Bytes::File(source) = &self.bytes else { return None };
        let facts = source.facts().ok()?;
        Some((facts.id, facts.len, facts.changed))
    }

    /// Where the image base is, given a mapping of the module.
    pub(crate) fn base(&self, mapping: &Mapping) -> Avma {
        let start = mapping.start;
        match &self.bytes {
            Bytes::Kernel(base) | Bytes::OtherKernel(base) => *base,
            Bytes::Provided(symbols, _) => symbols.base(mapping).0,
            // The vDSO's mapping shows the whole image.
            Bytes::Image(_) => start,
            Bytes::File(_) if self.is_whole_image(mapping) => start,
            // For a missing file, the file offset is the best known relative address.
            Bytes::Missing
            | Bytes::JitDump(..)
            | Bytes::PerfMap(..)
            | Bytes::KernelCode(_)
            | Bytes::UnnamedCode(_) => Avma(start.0.wrapping_sub(mapping.offset.0)),
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

    /// The unwinding tables of the module, which are compiled at the first call.
    pub(crate) fn unwind(&self) -> Option<Arc<nyquist_unwind::Module>> {
        let compile = || match &self.bytes {
            Bytes::File(source) => match self.id {
                Some(ModuleId::MachUuid(id)) => compile_macho(Arc::clone(source), id),
                _ => compile(Arc::clone(source)),
            },
            Bytes::Image(image) | Bytes::Memory(image) => compile(Arc::clone(image)),
            _ => None,
        };
        self.unwind.get_or_init(compile).clone()
    }

    /// The architecture of the module's code, if it is known.
    pub(crate) fn architecture(&self) -> Option<Architecture> {
        self.architecture
    }

    /// Whether an address is the return address that `makecontext` puts on the stack for a coroutine's first
    /// function. It is the beginning of a function, no call returns to it, and the function changes to
    /// another stack first, as `__start_context` does. A walk by frame pointers can read pointers to
    /// functions, so the first condition alone is not enough.
    pub(crate) fn is_coroutine_root(&self, base: Avma, address: Avma) -> bool {
        const MAX_INSTRUCTION_BYTES: usize = 16;
        if self.architecture != Some(Architecture::X86_64) {
            return false;
        }
        let unwinding = self.unwind_at(base, address);
        let mut code = [0; MAX_INSTRUCTION_BYTES];
        unwinding.is_some_and(|(tables, relative)| tables.begins_after_gap(relative)) && {
            let len = self.read_code(base, address, &mut code);
            nyquist_unwind::begins_with_stack_switch(&code[..len])
        }
    }

    /// Whether a signal handler returns to an address, according to the unwind information.
    pub(crate) fn is_signal_return(&self, base: Avma, address: Avma) -> bool {
        let unwinding = self.unwind_at(base, address);
        unwinding.is_some_and(|(tables, relative)| tables.rule(relative) == Rule::SIGNAL_FRAME)
    }

    /// The unwinding tables, and the address relative to their base.
    fn unwind_at(&self, base: Avma, address: Avma) -> Option<(Arc<nyquist_unwind::Module>, RelativeAddress)> {
        let relative = u32::try_from(address.0.checked_sub(base.0)?).ok()?;
        Some((self.unwind()?, RelativeAddress(relative)))
    }

    /// Copies the module's instructions from an address on, given its image base, and returns the number of
    /// bytes.
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
            _ => false,
        };
        if read { len } else { 0 }
    }

    /// The profile's lib for the module.
    pub(crate) fn lib(&self) -> Lib {
        let path = without_deleted(&self.path);
        let name = file_name(path);
        let arch = match self.architecture {
            Some(Architecture::X86_64) => Some("x86_64"),
            Some(Architecture::X86) => Some("x86"),
            Some(Architecture::Aarch64) => Some("arm64"),
            Some(Architecture::Other(_)) | None => None,
        };
        // A perf map can have several libs, and libs with the same debug name would become one.
        let debug_name = match &self.bytes {
            Bytes::PerfMap(_, base) | Bytes::KernelCode(base) | Bytes::UnnamedCode(base) => {
                format!("{name}+{base:#x}", base = base.0)
            }
            _ if self.pdb.is_empty() => name.to_string(),
            _ => self.pdb.clone(),
        };
        let breakpad_id = match &self.bytes {
            Bytes::JitDump(_, id) => id.get().map(DebugId::breakpad),
            Bytes::PerfMap(map, _) => map.id().map(|id| id.breakpad()),
            _ => self.id.as_ref().map(|id| id.debug_id().breakpad()),
        };
        Lib {
            name: name.into_owned(),
            path: path.to_owned(),
            debug_name,
            debug_path: path.to_owned(),
            breakpad_id: breakpad_id.unwrap_or_default(),
            code_id: self.id.as_ref().and_then(ModuleId::code_id),
            arch: arch.map(str::to_owned),
        }
    }

    /// Where the module's code and symbols are, valid while this store lives. The file is held open, so that
    /// it is found even if it is deleted or replaced.
    pub(crate) fn source(&self, dumps: &JitDumps) -> LibSource {
        let path = without_deleted(&self.path);
        let held = match &self.bytes {
            Bytes::Image(image) | Bytes::Memory(image) => return LibSource::Image(Arc::clone(image)),
            Bytes::Provided(symbols, first) => {
                return LibSource::Jit(JitSymbols::plain(symbols.map(), Avma(*first)));
            }
            Bytes::JitDump(dump, _) => {
                return dumps.symbols(*dump).map_or(LibSource::Unknown, LibSource::Jit);
            }
            Bytes::UnnamedCode(base) => return LibSource::Jit(JitSymbols::none(*base)),
            _ if self.id.is_none() => return LibSource::Unknown,
            Bytes::File(source) => {
                let held = source.here().and_then(path_of_open).unwrap_or_else(|| path.into());
                Some(OpenFile { path: held, source: Arc::clone(source) })
            }
            Bytes::Kernel(_)
            | Bytes::OtherKernel(_)
            | Bytes::KernelCode(_)
            | Bytes::PerfMap(..)
            | Bytes::Missing => None,
        };
        LibSource::File(ModuleRequest {
            path: PathBuf::from(path),
            debug_name: self.pdb.clone(),
            id: self.id.clone(),
            alternatives: held.iter().map(|held| held.path.clone()).collect(),
            held,
            roots: self.root.iter().cloned().collect(),
            ..ModuleRequest::default()
        })
    }
}

fn compile(source: impl ByteSource + Send + Sync + 'static) -> Option<Arc<nyquist_unwind::Module>> {
    let source = Arc::new(source);
    let module = match Elf::open(Arc::clone(&source)) {
        Ok(elf) => nyquist_unwind::Module::from_shared_elf(elf),
        Err(_) => compile_pe(&source),
    };
    module.ok().map(Arc::new)
}

fn compile_macho(source: Arc<FileSource>, id: MachUuid) -> Option<Arc<nyquist_unwind::Module>> {
    let file = macho::open(source, id)?;
    nyquist_unwind::Module::from_macho(&file).ok().map(Arc::new)
}

/// The largest image of Windows that is read as a whole.
const MAX_IMAGE_BYTES: u64 = 256 << 20;

/// Compiles the unwind information of an image of Windows. It is in thousands of small pieces, which take
/// seconds to read one by one from a file.
fn compile_pe(source: &Arc<impl ByteSource>) -> Result<nyquist_unwind::Module, nyquist_unwind::UnwindError> {
    let len = source.len();
    if len <= MAX_IMAGE_BYTES {
        let image = source.read_range(0, len)?;
        return nyquist_unwind::Module::from_pe(&Pe::open(image)?);
    }
    nyquist_unwind::Module::from_pe(&Pe::open(Arc::clone(source))?)
}

/// The last part of a path of this system or of Windows.
fn file_name(path: &str) -> Cow<'_, str> {
    if is_windows_path(path) {
        return path.rsplit(['\\', '/']).next().unwrap_or(path).into();
    }
    Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy())
}

/// The name of a PDB, from its path on the machine that linked the image.
fn pdb_name(path: &[u8]) -> String {
    let name = path.rsplit(|byte| [b'\\', b'/'].contains(byte)).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
