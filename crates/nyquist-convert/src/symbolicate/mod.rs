//! The symbolicate stage: a profile of addresses becomes a profile of functions, files, lines and inlined
//! frames.

mod ahead;
mod answers;
pub(crate) mod lib_symbols;
mod rebuild;
pub(crate) mod unnamed_libs;
mod wait_names;

use crate::jit::symbols::JitSymbols;
use crate::modules::lib_source::LibSource;
use answers::{Answers, FramesByAddress, UnknownAddresses};
use nyquist_object::{Avma, RelativeAddress};
use nyquist_perf::PerfMap;
use nyquist_profile::{LibId, Profile};
use nyquist_resources::{join, on_threads};
use nyquist_symbols::{
    AddressInfo, Attempt, AttemptOutcome, Batch, FileRole, Finder, KernelError, KernelSymbols, ModuleSymbols,
};
use rebuild::{Names, rebuild};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Where symbols are looked for, and with how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    /// Finds binaries and debug files.
    pub finder: &'a Finder,
    /// Reads the running kernel's symbols, and finds its debug info with the finder. It is called if a
    /// profile has addresses in the kernel. It runs concurrently with the other look-ups, because it takes as
    /// long as they do.
    pub kernel: fn(&Finder) -> Result<KernelSymbols, KernelError>,
    /// How many threads look up at once.
    pub threads: NonZeroUsize,
}

/// The progress of symbolication, and a flag to end it early. It is shared with the code that displays it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Set this to end early. The remaining addresses are then named by their numbers.
    pub cancel: AtomicBool,
    /// How many addresses have been looked up.
    pub done: AtomicUsize,
    /// The number of all addresses.
    pub total: AtomicUsize,
}

/// A profile with names, and the files of its libs.
#[derive(Debug)]
pub struct SymbolicatedProfile {
    /// The profile.
    pub profile: Profile,
    /// The files of each lib that is a file.
    pub libs: Vec<LibReport>,
    /// Why the kernel's functions have no names, if the profile has any.
    pub kernel_error: Option<KernelError>,
}

/// The files of one lib.
#[derive(Clone, Debug)]
pub struct LibReport {
    /// The lib.
    pub lib: LibId,
    /// The file that its names and lines come from. `None` if no file with its identity was found.
    pub symbols_from: Option<PathBuf>,
    /// Every path that was tried, in order.
    pub tried: Vec<Attempt>,
}

/// Gives the frames of a profile their names. `sources` states where each lib's symbols come from. Frames of
/// other libs stay unchanged.
///
/// Each address is looked up once. The stacks are rebuilt in time linear in their number.
pub fn symbolicate(
    profile: Profile,
    sources: &[(LibId, LibSource)],
    symbols: Symbols<'_>,
    progress: &Progress,
) -> SymbolicatedProfile {
    Symbolicator::new(symbols).symbolicate(profile, sources, progress)
}

/// Names the addresses of a profile that have no names yet by their numbers, for readers that need no names.
/// Names can still be looked up later. Costs as much as building its tables.
pub fn name_by_address(profile: Profile) -> Profile {
    let frames = FramesByAddress::of(&profile);
    rebuild(profile, &Names { answers: &Answers::default(), frames, jit: FxHashMap::default() }).finish()
}

/// Gives names to the snapshots of one recording, one after the other. It keeps opened modules and answers,
/// so that only the new addresses of each snapshot are looked up.
#[derive(Debug)]
pub struct Symbolicator<'a> {
    symbols: Symbols<'a>,
    modules: FxHashMap<LibId, OpenedLib>,
    kernel: Kernel,
    answers: Answers,
    /// The files of modules and of the kernel that were found since the last symbolication.
    found_since: SymbolicationReport,
}

/// The report of a symbolication.
#[derive(Debug, Default)]
struct SymbolicationReport {
    libs: Vec<LibReport>,
    has_kernel: bool,
    kernel_error: Option<KernelError>,
}

/// The symbols of the running kernel, which are read when they are first needed.
#[derive(Debug)]
enum Kernel {
    Unread,
    Unreadable,
    Read(Box<KernelSymbols>),
}

impl<'a> Symbolicator<'a> {
    /// A symbolicator that has looked up nothing yet.
    pub fn new(symbols: Symbols<'a>) -> Self {
        Self {
            symbols,
            modules: FxHashMap::default(),
            kernel: Kernel::Unread,
            answers: Answers::default(),
            found_since: SymbolicationReport::default(),
        }
    }

    /// The finder of binaries and debug files.
    pub fn finder(&self) -> &'a Finder {
        self.symbols.finder
    }

    /// Gives the frames of a snapshot their names, as [`symbolicate()`] does. Libs must have the ids that
    /// they had in the snapshots before. [`SymbolicatedProfile::libs`] are the libs that were looked for since the
    /// last snapshot.
    pub fn symbolicate(
        &mut self,
        profile: Profile,
        sources: &[(LibId, LibSource)],
        progress: &Progress,
    ) -> SymbolicatedProfile {
        let frames = FramesByAddress::of(&profile);
        let mut unknown = self.answers.unknown(&frames);
        let total = sources.iter().map(|(lib, _)| unknown.count(*lib)).sum();
        progress.total.store(total, Ordering::Relaxed);
        let has_kernel = |(lib, source): &&(LibId, LibSource)| {
            matches!(source, LibSource::Kernel { .. }) && unknown.has(*lib)
        };
        let kernels: Vec<_> = sources.iter().filter(has_kernel).collect();
        let reads_kernel = matches!(self.kernel, Kernel::Unread) && !kernels.is_empty();
        let Symbols { kernel: read_kernel, finder, threads } = self.symbols;
        let mut look_up = || self.look_up(sources, &mut unknown, progress);
        let kernel = if reads_kernel {
            Some(join(move || read_kernel(finder), look_up).0)
        } else {
            look_up();
            None
        };
        if let Some(kernel) = kernel {
            self.take_kernel(kernel);
        }
        let SymbolicationReport { mut libs, has_kernel, kernel_error } =
            std::mem::take(&mut self.found_since);
        libs.sort_by_key(|report| report.lib);
        if let Kernel::Read(kernel) = &self.kernel {
            add_kernel_answers(&mut self.answers, &kernels, &mut unknown, kernel, threads);
            let kernels = kernels.into_iter().filter(|_| has_kernel);
            libs.extend(kernels.filter_map(|(lib, source)| kernel_report(*lib, source, kernel)));
        }
        let unkept = self.answers.take_unkept();
        let is_complete = !progress.cancel.load(Ordering::Relaxed);
        let rebuild = || self.rebuild(profile, sources, frames, is_complete);
        let profile = if unkept.is_empty() { rebuild() } else { join(|| self.keep(&unkept), rebuild).1 };
        SymbolicatedProfile { profile, libs, kernel_error }
    }

    /// Stores early answers in the cache.
    fn keep(&self, unkept: &[(LibId, Vec<RelativeAddress>)]) {
        for (lib, addresses) in unkept {
            let opened = self.modules.get(lib);
            if let Some(module) = opened.and_then(|opened| opened.module.as_ref()) {
                module.keep(self.answers.to(*lib, addresses));
            }
        }
    }

    /// Opens the modules of all libs that have unknown addresses, and looks all of these up together.
    fn look_up(
        &mut self,
        sources: &[(LibId, LibSource)],
        unknown: &mut UnknownAddresses,
        progress: &Progress,
    ) {
        self.open(sources, unknown, progress);
        // Libs that cannot be distinguished have one number, but occur twice in `sources`.
        let mut opened = Vec::new();
        for (lib, _) in sources {
            let module = self.modules.get(lib).and_then(|opened| opened.module.as_ref());
            if let Some(module) = module.filter(|_| unknown.has(*lib)) {
                opened.push((*lib, module, unknown.take(*lib)));
            }
        }
        let batches = opened.iter().map(|(_, module, addresses)| Batch { module, addresses });
        let batches: Vec<_> = batches.collect();
        let answers =
            nyquist_symbols::symbolicate(&batches, self.symbols.threads, &progress.cancel, &progress.done);
        for ((lib, _, addresses), answers) in opened.into_iter().zip(answers) {
            self.answers.add(lib, addresses, answers);
        }
    }

    fn open(&mut self, sources: &[(LibId, LibSource)], unknown: &UnknownAddresses, progress: &Progress) {
        let is_new = |lib: &LibId| unknown.has(*lib) && !self.modules.contains_key(lib);
        let requested: Vec<_> = sources.iter().filter(|(lib, _)| is_new(lib)).collect();
        let found = open_all(&requested, self.symbols, progress);
        for ((lib, _), opened) in requested.into_iter().zip(found) {
            self.take_module(*lib, opened);
        }
    }

    fn take_module(&mut self, lib: LibId, mut opened: OpenedLib) {
        let tried = opened.tried.take();
        let symbols_from = opened.provided_in.clone().or_else(|| opened.symbols_from.clone());
        self.found_since.libs.extend(tried.map(|tried| LibReport { lib, symbols_from, tried }));
        self.modules.insert(lib, opened);
    }

    /// Reads the kernel's symbols, if that was not tried yet.
    fn read_kernel(&mut self) {
        if let Kernel::Unread = self.kernel {
            let Symbols { kernel: read, finder, .. } = self.symbols;
            self.take_kernel(read(finder));
        }
    }

    /// Stores the kernel's symbols, or the reason why they are missing.
    fn take_kernel(&mut self, read: Result<KernelSymbols, KernelError>) {
        match read {
            Ok(kernel) => {
                self.kernel = Kernel::Read(Box::new(kernel));
                self.found_since.has_kernel = true;
            }
            Err(error) => {
                self.kernel = Kernel::Unreadable;
                self.found_since.kernel_error = Some(error);
            }
        }
    }

    /// The profile with the names that are known.
    fn rebuild(
        &self,
        profile: Profile,
        sources: &[(LibId, LibSource)],
        frames: FramesByAddress,
        is_complete: bool,
    ) -> Profile {
        let names = Names { answers: &self.answers, frames, jit: jit_libs(sources) };
        let mut builder = rebuild(profile, &names);
        wait_names::name_waits(&mut builder);
        for (lib, opened) in &self.modules {
            if let Some(path) = &opened.symbols_from {
                let path = path.to_string_lossy();
                if !path.starts_with("/proc/") {
                    builder.set_debug_path(*lib, path);
                }
            }
        }
        builder.meta_mut().symbolicated = is_complete;
        builder.finish()
    }
}

fn jit_libs(sources: &[(LibId, LibSource)]) -> FxHashMap<LibId, JitSymbols> {
    let libs = sources.iter().filter_map(|(lib, source)| match source {
        LibSource::Jit(symbols) => Some((*lib, symbols.clone())),
        _ => None,
    });
    libs.collect()
}

/// The outcome of opening one lib.
#[derive(Debug, Default)]
struct OpenedLib {
    module: Option<ModuleSymbols>,
    /// The file with its symbols.
    symbols_from: Option<PathBuf>,
    /// The file with answers that came with the profile, if these are used.
    provided_in: Option<PathBuf>,
    /// The attempts to find them, until they are reported.
    tried: Option<Vec<Attempt>>,
}

/// Finds and opens the modules of libs, on several threads, because some modules have to be decompressed
/// first. If symbolication is ended early, the remaining modules stay closed.
fn open_all(requested: &[&(LibId, LibSource)], symbols: Symbols<'_>, progress: &Progress) -> Vec<OpenedLib> {
    let (opened, next) = (vec_of_locks(requested.len()), AtomicUsize::new(0));
    let work = || {
        let numbers = || Some(next.fetch_add(1, Ordering::Relaxed));
        for (lock, (_, source)) in
            std::iter::from_fn(numbers).map_while(|n| opened.get(n).zip(requested.get(n).copied()))
        {
            if !progress.cancel.load(Ordering::Relaxed) {
                lock.get_or_init(|| OpenedLib::from(source, symbols.finder));
            }
        }
    };
    on_threads(symbols.threads.get().min(requested.len()), work);
    opened.into_iter().map(|lock| lock.into_inner().unwrap_or_default()).collect()
}

fn vec_of_locks(len: usize) -> Vec<OnceLock<OpenedLib>> {
    std::iter::repeat_with(OnceLock::new).take(len).collect()
}

impl OpenedLib {
    fn from(source: &LibSource, finder: &Finder) -> Self {
        match source {
            LibSource::File(request) => {
                let found = finder.find(request);
                let file = found.debug_file.as_ref().or(found.binary.as_ref());
                let symbols_from = file.map(|file| file.path.clone());
                let module = finder.open(&found).ok();
                let provided_in = module.as_ref().and_then(ModuleSymbols::provided_in).map(Path::to_owned);
                let mut tried = found.tried;
                tried.extend(provided_in.clone().map(|path| Attempt {
                    requested: FileRole::Answers,
                    path,
                    outcome: AttemptOutcome::Used,
                }));
                Self { module, symbols_from, provided_in, tried: Some(tried) }
            }
            LibSource::Image(image) => {
                Self { module: finder.open_image(image.to_vec()).ok(), ..Self::default() }
            }
            LibSource::Kernel { .. } | LibSource::Jit(_) | LibSource::Unknown => Self::default(),
        }
    }
}

fn add_kernel_answers(
    answers: &mut Answers,
    sources: &[&(LibId, LibSource)],
    unknown: &mut UnknownAddresses,
    kernel: &KernelSymbols,
    threads: NonZeroUsize,
) {
    for (lib, source) in sources {
        let (LibSource::Kernel { base, gone }, true) = (source, unknown.has(*lib)) else { continue };
        let addresses = unknown.take(*lib);
        let actual = |address: &RelativeAddress| Avma(base.0.wrapping_add(u64::from(address.0)));
        let requested: Vec<_> = addresses.iter().map(actual).collect();
        let infos = kernel.symbolicate(&requested, threads).into_iter().zip(&requested);
        let infos = infos.map(|(info, address)| Arc::new(named_by(gone, *address, info))).collect();
        answers.add(*lib, addresses, infos);
    }
}

/// Names an address that the kernel itself does not know any more.
fn named_by(gone: &PerfMap, address: Avma, info: AddressInfo) -> AddressInfo {
    match gone.find(address.0) {
        Some(entry) if info.frames.is_empty() => {
            let function = Some(entry.name.to_string().into());
            let frames =
                vec![nyquist_symbols::SourceFrame { function, ..nyquist_symbols::SourceFrame::default() }];
            AddressInfo { frames, ..info }
        }
        _ => info,
    }
}

/// Where the debug info of the kernel, or of one of its modules, was found.
fn kernel_report(lib: LibId, source: &LibSource, kernel: &KernelSymbols) -> Option<LibReport> {
    let LibSource::Kernel { base, .. } = source else { return None };
    let found = kernel.debug_info_at(*base)?;
    let is_used = |attempt: &&Attempt| {
        attempt.outcome == AttemptOutcome::Used
            && matches!(attempt.requested, FileRole::Binary | FileRole::DebugFile)
    };
    // A debug file is looked for after the binary, and unpacked files come last.
    let file = found.tried.iter().rfind(is_used)?;
    Some(LibReport { lib, symbols_from: Some(file.path.clone()), tried: found.tried.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::unnamed;
    use nyquist_perf::PerfMapEntry;
    use nyquist_profile::{
        CategoryColor, CategoryPair, Frame, Func, Lib, Meta, Process, ProfileBuilder, Sample, Thread,
    };

    const BASE: u64 = 0xffff_ffff_8100_0000;

    static READ: AtomicUsize = AtomicUsize::new(0);

    fn kernel(_: &Finder) -> Result<KernelSymbols, KernelError> {
        let symbols = "ffffffff81000100 T first\nffffffff81000200 T second\nffffffff81000300 T third\n";
        KernelSymbols::parse(symbols.as_bytes(), std::io::empty(), &[])
    }

    fn counted_kernel(finder: &Finder) -> Result<KernelSymbols, KernelError> {
        READ.fetch_add(1, Ordering::Relaxed);
        kernel(finder)
    }

    fn snapshot(addresses: &[u32]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib { name: "[kernel]".into(), ..Lib::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (time, &address) in (0..).zip(addresses) {
            let name = builder.intern_string("?");
            let func = builder.intern_func(Func::new(name, Some(lib)));
            let frame = builder.intern_frame(Frame { address: Some(address), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample::new(time, Some(stack), 1));
        }
        builder.finish()
    }

    #[test]
    fn a_later_snapshot_looks_up_only_new_addresses() {
        let finder = Finder::default();
        let mut symbolicator = Symbolicator::new(Symbols {
            finder: &finder,
            kernel: counted_kernel,
            threads: NonZeroUsize::MIN,
        });
        let mut gone = PerfMap::default();
        let (start, end) = (BASE + 0x10_0000, BASE + 0x10_0040);
        gone.insert(PerfMapEntry { start, end, name: "bpf_prog_gone".into() });
        let kernel = LibSource::Kernel { base: Avma(BASE), gone: gone.into() };
        let sources = [(LibId::from_index(0), kernel)];
        let mut check = |addresses: &[u32], names: &[&str], looked_up| {
            let progress = Progress::default();
            let profile = symbolicator.symbolicate(snapshot(addresses), &sources, &progress).profile;
            let found: Vec<_> = profile.funcs().iter().map(|func| profile.string(func.name)).collect();
            assert_eq!((found.as_slice(), progress.total.into_inner()), (names, looked_up));
        };
        check(&[0x104, 0x204], &["first", "second"], 2);
        check(&[0x204, 0x304, 0x104], &["second", "third", "first"], 1);
        check(&[0x104], &["first"], 0);
        check(&[0x10_0008, 0x10_0040], &["bpf_prog_gone", "?"], 2);
        assert_eq!(READ.load(Ordering::Relaxed), 1, "the kernel's symbols are read once");
    }

    #[test]
    fn unnamed_addresses_get_a_function_each() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib { name: "[kernel]".into(), ..Lib::default() });
        let func = unnamed::intern_func(&mut builder, lib);
        let categories = ["User", "Kernel"].map(|name| builder.add_category(name, CategoryColor::Grey));
        for (address, category) in [(0x104, 0), (0x204, 0), (0x104, 1)] {
            let category = Some(CategoryPair { category: categories[category], subcategory: 0 });
            builder.intern_frame(Frame { address: Some(address), category, ..Frame::label(func) });
        }
        let names = |profile: &Profile| -> Vec<_> {
            let frames = profile.frames().iter();
            frames.map(|frame| (frame.func.index(), profile.func_name(frame.func).to_owned())).collect()
        };
        let expected = |names: [&str; 2]| [0, 1, 0].map(|func| (func, names[func].to_owned()));
        let unnamed = builder.finish();
        let by_address = name_by_address(unnamed.clone());
        assert_eq!(names(&by_address), expected(["0x104", "0x204"]));
        assert!(!by_address.meta().symbolicated);
        let finder = Finder::default();
        let symbols = Symbols { finder: &finder, kernel, threads: NonZeroUsize::MIN };
        let sources = [(lib, LibSource::Kernel { base: Avma(BASE), gone: PerfMap::default().into() })];
        for profile in [unnamed, by_address] {
            let named = symbolicate(profile, &sources, symbols, &Progress::default());
            assert_eq!(names(&named.profile), expected(["first", "second"]));
        }
    }
}
