//! The symbolicate stage: a profile of addresses becomes a profile of functions, files, lines and inlined frames.

use crate::jit::{JitSymbols, name_frame};
use crate::modules::LibSource;
use nyquist_object::{Avma, RelativeAddress};
use nyquist_profile::{
    CodeTables, Frame, FrameId, Func, LibId, NativeSymbol, Profile, ProfileBuilder, Source, StackId,
};
use nyquist_symbols::{AddressInfo, Attempt, Batch, Finder, KernelError, KernelSymbols, ModuleSymbols};
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
    /// Reads the running kernel's symbols: called where a profile has addresses in it, beside the other lookups,
    /// for it takes as long as they do.
    pub kernel: fn() -> Result<KernelSymbols, KernelError>,
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
    let addresses = addresses_by_lib(&profile);
    let total = sources.iter().filter_map(|(lib, _)| addresses.get(lib)).map(Vec::len).sum();
    progress.total.store(total, Ordering::Relaxed);
    let ((mut infos, libs), kernel) = thread::scope(|scope| {
        let has_kernel = |(lib, source): &(LibId, LibSource)| {
            matches!(source, LibSource::Kernel(_)) && addresses.contains_key(lib)
        };
        let kernel = sources.iter().any(has_kernel).then(|| scope.spawn(symbols.kernel));
        let found = look_up(sources, &addresses, symbols, progress);
        (found, kernel.map(|kernel| kernel.join().unwrap_or_else(|panic| resume_unwind(panic))))
    });
    let kernel_error = match kernel {
        Some(Ok(kernel)) => {
            add_kernel_infos(&mut infos, sources, &addresses, &kernel);
            None
        }
        other => other.and_then(Result::err),
    };
    let (mut builder, code) = ProfileBuilder::rebuild(profile);
    for report in &libs {
        if let Some(path) = &report.symbols_from {
            let path = path.to_string_lossy();
            if !path.starts_with("/proc/") {
                builder.set_debug_path(report.lib, path);
            }
        }
    }
    let names = Names { infos, jit: jit_libs(sources) };
    let map = rebuild_stacks(&mut builder, &code, &names);
    builder.remap_stacks(|stack| map.get(stack.index()).copied());
    builder.meta_mut().symbolicated = !progress.cancel.load(Ordering::Relaxed);
    Symbolicated { profile: builder.finish(), libs, kernel_error }
}

type Addresses = FxHashMap<LibId, Vec<RelativeAddress>>;
type Infos = FxHashMap<(LibId, u32), AddressInfo>;

/// What gives frames their names.
struct Names {
    infos: Infos,
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

/// The addresses of each lib's frames, each once, in order.
fn addresses_by_lib(profile: &Profile) -> Addresses {
    let mut addresses = Addresses::default();
    for frame in profile.frames() {
        if let (Some(address), Some(lib)) = (frame.address, profile.func(frame.func).lib) {
            addresses.entry(lib).or_default().push(RelativeAddress(address));
        }
    }
    for addresses in addresses.values_mut() {
        addresses.sort_unstable();
        addresses.dedup();
    }
    addresses
}

/// Opens the modules of all libs that have addresses, and looks up these together.
fn look_up(
    sources: &[(LibId, LibSource)],
    addresses: &Addresses,
    symbols: Symbols<'_>,
    progress: &Progress,
) -> (Infos, Vec<LibReport>) {
    let wanted: Vec<_> =
        sources.iter().filter_map(|(lib, source)| Some((*lib, source, addresses.get(lib)?))).collect();
    let found = open_all(&wanted, symbols, progress);
    let mut opened = Vec::new();
    let mut reports = Vec::new();
    for ((lib, _, addresses), Opened { module, report }) in wanted.iter().zip(found) {
        reports.extend(report.map(|(symbols_from, tried)| LibReport { lib: *lib, symbols_from, tried }));
        opened.extend(module.map(|module| (*lib, module, *addresses)));
    }
    let batches: Vec<_> = opened.iter().map(|(_, module, addresses)| Batch { module, addresses }).collect();
    let answers = nyquist_symbols::symbolicate(&batches, symbols.threads, &progress.cancel, &progress.done);
    let mut infos = Infos::default();
    for ((lib, _, addresses), answers) in opened.iter().zip(answers) {
        infos.extend(addresses.iter().zip(answers).map(|(address, info)| ((*lib, address.0), info)));
    }
    (infos, reports)
}

/// What came of opening one lib.
#[derive(Default)]
struct Opened {
    module: Option<ModuleSymbols>,
    /// Where its symbols are, and where they were looked for.
    report: Option<(Option<PathBuf>, Vec<Attempt>)>,
}

/// Finds and opens the modules of libs, each thread one after the other: some have to be decompressed first.
/// Those whose turn has not come when it is ended early stay closed.
fn open_all<T: Sync>(
    wanted: &[(LibId, &LibSource, T)],
    symbols: Symbols<'_>,
    progress: &Progress,
) -> Vec<Opened> {
    let (opened, next) = (vec_of_locks(wanted.len()), AtomicUsize::new(0));
    let work = || {
        let numbers = || Some(next.fetch_add(1, Ordering::Relaxed));
        for (lock, (_, source, _)) in
            std::iter::from_fn(numbers).map_while(|n| opened.get(n).zip(wanted.get(n)))
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
                let report = Some((file.map(|file| file.path.clone()), found.tried.clone()));
                Self { module: ModuleSymbols::open(&found).ok(), report }
            }
            LibSource::Image(image) => {
                Self { module: ModuleSymbols::from_image(image.to_vec()).ok(), report: None }
            }
            LibSource::Kernel(_) | LibSource::Jit(_) | LibSource::Unknown => Self::default(),
        }
    }
}

fn add_kernel_infos(
    infos: &mut Infos,
    sources: &[(LibId, LibSource)],
    addresses: &Addresses,
    kernel: &KernelSymbols,
) {
    for (lib, source) in sources {
        let (LibSource::Kernel(base), Some(addresses)) = (source, addresses.get(lib)) else { continue };
        for address in addresses {
            let info = kernel.lookup(Avma(base.0.wrapping_add(u64::from(address.0))));
            infos.insert((*lib, address.0), info);
        }
    }
}

/// Interns every stack again with the frames that each of its frames has become. Gives back the new id of each.
fn rebuild_stacks(builder: &mut ProfileBuilder, code: &CodeTables, names: &Names) -> Vec<StackId> {
    let frames: Vec<Vec<FrameId>> =
        code.frames.iter().map(|frame| named_frames(builder, code, frame, names)).collect();
    let mut map: Vec<StackId> = Vec::with_capacity(code.stacks.len());
    for stack in &code.stacks {
        let mut prefix = stack.prefix.map(|prefix| map[prefix.index()]);
        for &frame in &frames[stack.frame.index()] {
            prefix = Some(builder.intern_stack(prefix, frame));
        }
        // A frame becomes one frame at least, so that there is a stack.
        map.extend(prefix);
    }
    map
}

/// The frames that an address stands for, the outermost function first, then what is inlined into it.
fn named_frames(
    builder: &mut ProfileBuilder,
    code: &CodeTables,
    frame: &Frame,
    names: &Names,
) -> Vec<FrameId> {
    let func = code.funcs[frame.func.index()];
    if let Some(lib) = func.lib
        && let Some(symbols) = names.jit.get(&lib)
        && let Some(frame) = name_frame(builder, symbols, lib, frame)
    {
        return vec![frame];
    }
    let info =
        func.lib.zip(frame.address).and_then(|(lib, address)| Some((lib, names.infos.get(&(lib, address))?)));
    let Some((lib, info)) = info.filter(|(_, info)| !info.frames.is_empty()) else {
        let func = builder.intern_func(func);
        let native_symbol = frame
            .native_symbol
            .map(|symbol| builder.intern_native_symbol(code.native_symbols[symbol.index()]));
        return vec![builder.intern_frame(Frame { func, native_symbol, ..*frame })];
    };
    let native_symbol = info.symbol.as_ref().map(|symbol| {
        let name = builder.intern_string(&symbol.name);
        builder.intern_native_symbol(NativeSymbol { lib, address: symbol.address.0, size: symbol.size, name })
    });
    let depths = 0..=u16::MAX;
    let outermost_first = info.frames.iter().rev().zip(depths);
    let named = outermost_first.map(|(named, inline_depth)| {
        let name = match &named.function {
            Some(name) => builder.intern_string(name),
            None => func.name,
        };
        let source = named.file.as_ref().map(|file| {
            let filename = builder.intern_string(file);
            builder.intern_source(Source { filename })
        });
        let func = builder.intern_func(Func { name, lib: Some(lib), source, line: None, column: None });
        builder.intern_frame(Frame {
            func,
            inline_depth,
            native_symbol,
            line: named.line,
            column: named.column,
            ..*frame
        })
    });
    named.collect()
}
