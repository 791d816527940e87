//! The symbolicate stage: a profile of addresses becomes a profile of functions, files, lines and inlined frames.

use crate::jit::{JitSymbols, name_frame};
use crate::modules::LibSource;
use nyquist_object::{Avma, RelativeAddress};
use nyquist_perf::PerfMap;
use nyquist_profile::{
    CodeTables, Frame, FrameId, Func, FuncId, LibId, NativeSymbol, Profile, ProfileBuilder, Source, Stack,
    StackId,
};
use nyquist_symbols::{
    AddressInfo, Attempt, Batch, Finder, KernelError, KernelSymbols, ModuleSymbols, Outcome, Wanted,
};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Where symbols are looked for, and with how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    /// Finds binaries and debug files.
    pub finder: &'a Finder,
    /// Reads the running kernel's symbols, and finds its debug info with the finder: called where a profile has addresses in it, beside the other lookups,
    /// for it takes as long as they do.
    pub kernel: fn(&Finder) -> Result<KernelSymbols, KernelError>,
    /// How many threads look up at once.
    pub threads: NonZeroUsize,
}

/// How far symbolication is, and the way to end it early. Shared with whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Set to end early: the addresses whose turn has not come keep their numbers for names.
    pub cancel: AtomicBool,
    /// How many addresses have been looked up.
    pub done: AtomicUsize,
    /// How many addresses there are.
    pub total: AtomicUsize,
}

/// A profile with names, and what was found of its libs.
#[derive(Debug)]
pub struct Symbolicated {
    /// The profile.
    pub profile: Profile,
    /// What was found of each lib that is a file.
    pub libs: Vec<LibReport>,
    /// Why the kernel's functions have no names, where it has any in the profile.
    pub kernel_error: Option<KernelError>,
}

/// What was found of one lib.
#[derive(Clone, Debug)]
pub struct LibReport {
    /// The lib.
    pub lib: LibId,
    /// The file that its names and lines come from; `None` where no file of its identity was found.
    pub symbols_from: Option<PathBuf>,
    /// Every path that was tried, in order.
    pub tried: Vec<Attempt>,
}

/// Gives the frames of a profile their names. `sources` says where each lib's symbols come from; frames of other
/// libs stay as they are.
///
/// Addresses are looked up once each; the stacks are rebuilt in time linear in their number.
pub fn symbolicate(
    profile: Profile,
    sources: &[(LibId, LibSource)],
    symbols: Symbols<'_>,
    progress: &Progress,
) -> Symbolicated {
    Symbolicator::new(symbols).symbolicate(profile, sources, progress)
}

/// Gives names to the snapshots of one recording, one after the other: it keeps the modules that it has opened and what
/// it has found, so that of each snapshot only the addresses are looked up that no one before it had.
#[derive(Debug)]
pub struct Symbolicator<'a> {
    symbols: Symbols<'a>,
    modules: FxHashMap<LibId, Opened>,
    kernel: Kernel,
    infos: Infos,
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
        Self { symbols, modules: FxHashMap::default(), kernel: Kernel::Unread, infos: Infos::default() }
    }

    /// Gives the frames of a snapshot their names, as [`symbolicate()`] does. Libs must have the ids that they had in
    /// the snapshots before. [`Symbolicated::libs`] are those that were looked for now.
    pub fn symbolicate(
        &mut self,
        profile: Profile,
        sources: &[(LibId, LibSource)],
        progress: &Progress,
    ) -> Symbolicated {
        let addresses = self.new_addresses(&profile);
        let total = sources.iter().filter_map(|(lib, _)| addresses.get(lib)).map(Vec::len).sum();
        progress.total.store(total, Ordering::Relaxed);
        let has_kernel = |(lib, source): &(LibId, LibSource)| {
            matches!(source, LibSource::Kernel { .. }) && addresses.contains_key(lib)
        };
        let reads_kernel = matches!(self.kernel, Kernel::Unread) && sources.iter().any(has_kernel);
        let Symbols { kernel: read_kernel, finder, threads } = self.symbols;
        let (mut libs, kernel) = thread::scope(|scope| {
            let kernel = reads_kernel.then(|| scope.spawn(move || read_kernel(finder)));
            let libs = self.look_up(sources, &addresses, progress);
            (libs, kernel.map(|kernel| kernel.join().unwrap_or_else(|panic| resume_unwind(panic))))
        });
        let kernel_error = kernel.and_then(|kernel| self.take_kernel(kernel));
        if let Kernel::Read(kernel) = &self.kernel {
            add_kernel_infos(&mut self.infos, sources, &addresses, kernel, threads);
            let kernels = sources.iter().filter(|source| reads_kernel && has_kernel(source));
            libs.extend(kernels.filter_map(|(lib, source)| kernel_report(*lib, source, kernel)));
        }
        let profile = self.rebuild(profile, sources, !progress.cancel.load(Ordering::Relaxed));
        Symbolicated { profile, libs, kernel_error }
    }

    /// The addresses of each lib's frames of which nothing is known yet, each once, in order.
    fn new_addresses(&self, profile: &Profile) -> Addresses {
        let mut addresses = Addresses::default();
        for frame in profile.frames() {
            if let (Some(address), Some(lib)) = (frame.address, profile.func(frame.func).lib)
                && !self.infos.contains_key(&(lib, address))
            {
                addresses.entry(lib).or_default().push(RelativeAddress(address));
            }
        }
        for addresses in addresses.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
        addresses
    }

    /// Opens the modules of all libs that have new addresses, and looks up these together. Says what was found of the
    /// libs that it opened.
    fn look_up(
        &mut self,
        sources: &[(LibId, LibSource)],
        addresses: &Addresses,
        progress: &Progress,
    ) -> Vec<LibReport> {
        let reports = self.open(sources, addresses, progress);
        let modules = &self.modules;
        let opened: Vec<_> = sources
            .iter()
            .filter_map(|(lib, _)| Some((*lib, modules.get(lib)?.module.as_ref()?, addresses.get(lib)?)))
            .collect();
        let batches: Vec<_> =
            opened.iter().map(|&(_, module, addresses)| Batch { module, addresses }).collect();
        let answers =
            nyquist_symbols::symbolicate(&batches, self.symbols.threads, &progress.cancel, &progress.done);
        for ((lib, _, addresses), answers) in opened.into_iter().zip(answers) {
            self.infos.extend(addresses.iter().zip(answers).map(|(address, info)| ((lib, address.0), info)));
        }
        reports
    }

    fn open(
        &mut self,
        sources: &[(LibId, LibSource)],
        addresses: &Addresses,
        progress: &Progress,
    ) -> Vec<LibReport> {
        let is_new = |lib: &LibId| addresses.contains_key(lib) && !self.modules.contains_key(lib);
        let wanted: Vec<_> = sources.iter().filter(|(lib, _)| is_new(lib)).collect();
        let found = open_all(&wanted, self.symbols, progress);
        let mut reports = Vec::new();
        for ((lib, _), mut opened) in wanted.into_iter().zip(found) {
            let tried = opened.tried.take();
            let symbols_from = opened.symbols_from.clone();
            reports.extend(tried.map(|tried| LibReport { lib: *lib, symbols_from, tried }));
            self.modules.insert(*lib, opened);
        }
        reports
    }

    /// Keeps the kernel's symbols, or says why there are none.
    fn take_kernel(&mut self, read: Result<KernelSymbols, KernelError>) -> Option<KernelError> {
        match read {
            Ok(kernel) => {
                self.kernel = Kernel::Read(Box::new(kernel));
                None
            }
            Err(error) => {
                self.kernel = Kernel::Unreadable;
                Some(error)
            }
        }
    }

    /// The profile with the names that are known.
    fn rebuild(&self, profile: Profile, sources: &[(LibId, LibSource)], is_complete: bool) -> Profile {
        let (mut builder, code) = ProfileBuilder::rebuild(profile);
        for (lib, opened) in &self.modules {
            if let Some(path) = &opened.symbols_from {
                let path = path.to_string_lossy();
                if !path.starts_with("/proc/") {
                    builder.set_debug_path(*lib, path);
                }
            }
        }
        let names = Names { infos: &self.infos, jit: jit_libs(sources) };
        let map = rebuild_stacks(&mut builder, code, &names);
        builder.remap_stacks(|stack| map.get(stack.index()).copied());
        builder.meta_mut().symbolicated = is_complete;
        builder.finish()
    }
}

type Addresses = FxHashMap<LibId, Vec<RelativeAddress>>;
type Infos = FxHashMap<(LibId, u32), AddressInfo>;

/// What gives frames their names.
struct Names<'a> {
    infos: &'a Infos,
    /// The libs of code that was made while the program ran.
    jit: FxHashMap<LibId, JitSymbols>,
}

fn jit_libs(sources: &[(LibId, LibSource)]) -> FxHashMap<LibId, JitSymbols> {
    let libs = sources.iter().filter_map(|(lib, source)| match source {
        LibSource::Jit(symbols) => Some((*lib, symbols.clone())),
        _ => None,
    });
    libs.collect()
}

/// What came of opening one lib.
#[derive(Debug, Default)]
struct Opened {
    module: Option<ModuleSymbols>,
    /// Where its symbols are.
    symbols_from: Option<PathBuf>,
    /// Where they were looked for, until that is reported.
    tried: Option<Vec<Attempt>>,
}

/// Finds and opens the modules of libs, each thread one after the other: some have to be decompressed first.
/// Those whose turn has not come when it is ended early stay closed.
fn open_all(wanted: &[&(LibId, LibSource)], symbols: Symbols<'_>, progress: &Progress) -> Vec<Opened> {
    let (opened, next) = (vec_of_locks(wanted.len()), AtomicUsize::new(0));
    let work = || {
        let numbers = || Some(next.fetch_add(1, Ordering::Relaxed));
        for (lock, (_, source)) in
            std::iter::from_fn(numbers).map_while(|n| opened.get(n).zip(wanted.get(n).copied()))
        {
            if !progress.cancel.load(Ordering::Relaxed) {
                lock.get_or_init(|| Opened::from(source, symbols.finder));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..symbols.threads.get().min(wanted.len()) {
            scope.spawn(work);
        }
        work();
    });
    opened.into_iter().map(|lock| lock.into_inner().unwrap_or_default()).collect()
}

fn vec_of_locks(len: usize) -> Vec<OnceLock<Opened>> {
    std::iter::repeat_with(OnceLock::new).take(len).collect()
}

impl Opened {
    fn from(source: &LibSource, finder: &Finder) -> Self {
        match source {
            LibSource::File(request) => {
                let found = finder.find(request);
                let file = found.debug_file.as_ref().or(found.binary.as_ref());
                Self {
                    module: finder.open(&found).ok(),
                    symbols_from: file.map(|file| file.path.clone()),
                    tried: Some(found.tried.clone()),
                }
            }
            LibSource::Image(image) => {
                Self { module: ModuleSymbols::from_image(image.to_vec()).ok(), ..Self::default() }
            }
            LibSource::Kernel { .. } | LibSource::Jit(_) | LibSource::Unknown => Self::default(),
        }
    }
}

fn add_kernel_infos(
    infos: &mut Infos,
    sources: &[(LibId, LibSource)],
    addresses: &Addresses,
    kernel: &KernelSymbols,
    threads: NonZeroUsize,
) {
    for (lib, source) in sources {
        let (LibSource::Kernel { base, gone }, Some(addresses)) = (source, addresses.get(lib)) else {
            continue;
        };
        let actual = |address: &RelativeAddress| Avma(base.0.wrapping_add(u64::from(address.0)));
        let wanted: Vec<_> = addresses.iter().map(actual).collect();
        let answers = kernel.symbolicate(&wanted, threads).into_iter().zip(&wanted);
        let answers = answers.map(|(info, address)| named_by(gone, *address, info));
        infos.extend(addresses.iter().zip(answers).map(|(address, info)| ((*lib, address.0), info)));
    }
}

/// What is known of an address that the kernel itself does not know any more.
fn named_by(gone: &PerfMap, address: Avma, info: AddressInfo) -> AddressInfo {
    match gone.find(address.0) {
        Some(entry) if info.frames.is_empty() => {
            let function = Some(entry.name.to_string().into());
            let frames = vec![nyquist_symbols::Frame { function, ..nyquist_symbols::Frame::default() }];
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
        attempt.outcome == Outcome::Used && matches!(attempt.wanted, Wanted::Binary | Wanted::DebugFile)
    };
    // A debug file is looked for after the binary, and what is unpacked comes last.
    let file = found.tried.iter().rfind(is_used)?;
    Some(LibReport { lib, symbols_from: Some(file.path.clone()), tried: found.tried.clone() })
}

/// Makes every stack again, of the frames that each of its frames has become. Gives back the new id of each.
fn rebuild_stacks(builder: &mut ProfileBuilder, code: CodeTables, names: &Names<'_>) -> Vec<StackId> {
    let chains = Chains::of(builder, &code, names);
    // Of the old tables, only this one is still needed.
    let stacks = code.stacks;
    drop((code.funcs, code.native_symbols, code.frames));
    let mut map: Vec<StackId> = Vec::with_capacity(stacks.len());
    let are_distinct = chains.begin_apart(builder.profile().frames().len());
    for stack in stacks {
        let mut prefix = stack.prefix.map(|prefix| map[prefix.index()]);
        for &frame in chains.of_frame(stack.frame) {
            prefix = Some(if are_distinct {
                builder.append_stack(Stack { prefix, frame })
            } else {
                builder.intern_stack(prefix, frame)
            });
        }
        // A frame becomes one frame at least, so that there is a stack.
        map.extend(prefix);
    }
    map
}

/// The frames that each frame of a profile has become, the outermost function first, then what is inlined into it.
#[derive(Default)]
struct Chains {
    frames: Vec<FrameId>,
    /// Where each chain ends in `frames`, and the next one begins.
    ends: Vec<usize>,
}

impl Chains {
    fn of(builder: &mut ProfileBuilder, code: &CodeTables, names: &Names<'_>) -> Self {
        let mut chains = Self::default();
        chains.ends.reserve(code.frames.len());
        let mut nameless = Nameless { code, funcs: vec![None; code.funcs.len()] };
        for frame in &code.frames {
            if !add_named(&mut chains.frames, builder, code, frame, names) {
                chains.frames.push(nameless.frame(builder, frame));
            }
            chains.ends.push(chains.frames.len());
        }
        chains
    }

    fn of_frame(&self, frame: FrameId) -> &[FrameId] {
        self.chain(frame.index())
    }

    fn chain(&self, place: usize) -> &[FrameId] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.frames[start..self.ends[place]]
    }

    /// Whether no two of them begin with the same of so many frames: then stacks that are different stay so.
    fn begin_apart(&self, frames: usize) -> bool {
        let mut seen = vec![false; frames];
        (0..self.ends.len())
            .filter_map(|place| self.chain(place).first())
            .all(|first| !std::mem::replace(&mut seen[first.index()], true))
    }
}

/// Frames that stay as they are. They are as distinct as they were, so that none is searched for.
struct Nameless<'a> {
    code: &'a CodeTables,
    /// What each function has become.
    funcs: Vec<Option<FuncId>>,
}

impl Nameless<'_> {
    fn frame(&mut self, builder: &mut ProfileBuilder, frame: &Frame) -> FrameId {
        let known = &mut self.funcs[frame.func.index()];
        let func = *known.get_or_insert_with(|| builder.append_func(self.code.funcs[frame.func.index()]));
        let native_symbol = frame
            .native_symbol
            .map(|symbol| builder.intern_native_symbol(self.code.native_symbols[symbol.index()]));
        builder.append_frame(Frame { func, native_symbol, ..*frame })
    }
}

/// Adds the frames that an address stands for; false where it has no name.
fn add_named(
    frames: &mut Vec<FrameId>,
    builder: &mut ProfileBuilder,
    code: &CodeTables,
    frame: &Frame,
    names: &Names<'_>,
) -> bool {
    let func = code.funcs[frame.func.index()];
    let Some(lib) = func.lib else { return false };
    if let Some(symbols) = names.jit.get(&lib)
        && let Some(frame) = name_frame(builder, symbols, lib, frame)
    {
        frames.push(frame);
        return true;
    }
    let info = frame.address.and_then(|address| names.infos.get(&(lib, address)));
    let Some(info) = info.filter(|info| !info.frames.is_empty()) else { return false };
    let native_symbol = info.symbol.as_ref().map(|symbol| {
        let name = builder.intern_string(&symbol.name);
        builder.intern_native_symbol(NativeSymbol { lib, address: symbol.address.0, size: symbol.size, name })
    });
    let depths = 0..=u16::MAX;
    let outermost_first = info.frames.iter().rev().zip(depths);
    frames.extend(outermost_first.map(|(named, inline_depth)| {
        let name = match &named.function {
            Some(name) => builder.intern_string(name),
            None => func.name,
        };
        let mut source = |file: &Option<_>| {
            let filename = builder.intern_string(file.as_deref()?);
            Some(builder.intern_source(Source { filename }))
        };
        let (of_line, declared_in) = (source(&named.file), source(&named.declared_in));
        let of_func = declared_in.or(of_line);
        let func =
            builder.intern_func(Func { name, lib: Some(lib), source: of_func, line: None, column: None });
        builder.intern_frame(Frame {
            func,
            inline_depth,
            native_symbol,
            source: of_line.filter(|_| declared_in.is_some() && named.line.is_some()),
            line: named.line,
            column: named.column,
            ..*frame
        })
    }));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_perf::PerfMapEntry;
    use nyquist_profile::{Lib, Meta, Process, Sample, Thread};

    const BASE: u64 = 0xffff_ffff_8100_0000;

    static READ: AtomicUsize = AtomicUsize::new(0);

    fn kernel(_: &Finder) -> Result<KernelSymbols, KernelError> {
        READ.fetch_add(1, Ordering::Relaxed);
        let symbols = "ffffffff81000100 T first\nffffffff81000200 T second\nffffffff81000300 T third\n";
        KernelSymbols::parse(symbols.as_bytes(), std::io::empty(), &[])
    }

    fn snapshot(addresses: &[u32]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib { name: "[kernel]".into(), ..Lib::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (time, &address) in (0..).zip(addresses) {
            let name = builder.intern_string("?");
            let func =
                builder.intern_func(Func { name, lib: Some(lib), source: None, line: None, column: None });
            let frame = builder.intern_frame(Frame { address: Some(address), ..Frame::label(func) });
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample::new(time, Some(stack), 1));
        }
        builder.finish()
    }

    #[test]
    fn of_a_later_snapshot_only_new_addresses_are_looked_up() {
        let finder = Finder::default();
        let mut symbolicator =
            Symbolicator::new(Symbols { finder: &finder, kernel, threads: NonZeroUsize::MIN });
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
}
