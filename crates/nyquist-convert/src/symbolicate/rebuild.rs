//! Rebuilds a profile's tables with the known names.

use super::answers::{Answers, FramesByAddress};
use crate::build::unnamed;
use crate::jit::naming::name_frame;
use crate::jit::symbols::JitSymbols;
use nyquist_profile::{
    CodeTables, Frame, FrameId, Func, FuncId, LibId, NativeSymbol, NativeSymbolId, Profile, ProfileBuilder,
    Source, Stack, StackId, StringId,
};
use nyquist_symbols::{AddressInfo, Symbol, special_source_path};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The sources of frames' names.
pub(super) struct Names<'a> {
    pub(super) answers: &'a Answers,
    pub(super) frames: FramesByAddress,
    /// The libs of code that was generated at run time.
    pub(super) jit: FxHashMap<LibId, JitSymbols>,
}

/// Rebuilds a profile's tables of code, with names.
pub(super) fn rebuild(profile: Profile, names: &Names<'_>) -> ProfileBuilder {
    let (mut builder, code) = ProfileBuilder::rebuild(profile);
    let map = rebuild_stacks(&mut builder, code, names);
    builder.remap_stacks(|stack| map.get(stack.index()).copied());
    builder
}

/// Rebuilds every stack from the new frames of each of its frames. Returns the new id of each stack.
fn rebuild_stacks(builder: &mut ProfileBuilder, code: CodeTables, names: &Names<'_>) -> Vec<StackId> {
    let chains = Chains::of(builder, &code, names);
    // Only this one of the old tables is still needed.
    let stacks = code.stacks;
    drop((code.funcs, code.native_symbols, code.frames));
    let mut map: Vec<StackId> = Vec::with_capacity(stacks.len());
    let are_distinct = chains.begin_with_distinct_frames(builder.profile().frames().len());
    for stack in stacks {
        let mut prefix = stack.prefix.map(|prefix| map[prefix.index()]);
        for &frame in chains.of_frame(stack.frame) {
            prefix = Some(if are_distinct {
                builder.append_stack(Stack { prefix, frame })
            } else {
                builder.intern_stack(prefix, frame)
            });
        }
        // A frame becomes at least one frame, so that a stack exists.
        map.extend(prefix);
    }
    map
}

/// The new frames of each frame of a profile: the outermost function first, then the functions that are
/// inlined into it.
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
        let mut namer = Namer::new(code, names, builder.profile().libs().len());
        let mut nameless = Nameless::new(code);
        let answers = names.answers.numbers(&names.frames, code.frames.len());
        for (frame, answer) in code.frames.iter().zip(answers) {
            if !namer.add_frames(&mut chains.frames, builder, frame, answer) {
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

    /// Whether no two chains begin with the same frame, given the number of new frames. Then different stacks
    /// stay different.
    fn begin_with_distinct_frames(&self, frames: usize) -> bool {
        let mut seen = vec![false; frames];
        (0..self.ends.len())
            .filter_map(|place| self.chain(place).first())
            .all(|first| !std::mem::replace(&mut seen[first.index()], true))
    }
}

/// Frames that stay unchanged, or are named by their addresses. They stay distinct, so none has to be
/// searched for.
struct Nameless<'a> {
    code: &'a CodeTables,
    /// The new id of each function.
    funcs: Vec<Option<FuncId>>,
    /// The functions of addresses that have no name.
    by_address: FxHashMap<(LibId, u32), FuncId>,
}

impl<'a> Nameless<'a> {
    fn new(code: &'a CodeTables) -> Self {
        Self { code, funcs: vec![None; code.funcs.len()], by_address: FxHashMap::default() }
    }

    fn frame(&mut self, builder: &mut ProfileBuilder, frame: &Frame) -> FrameId {
        let func = self.func(builder, frame);
        let native_symbol = frame
            .native_symbol
            .map(|symbol| builder.intern_native_symbol(self.code.native_symbols[symbol.index()]));
        builder.append_frame(Frame { func, native_symbol, ..*frame })
    }

    fn func(&mut self, builder: &mut ProfileBuilder, frame: &Frame) -> FuncId {
        let func = &self.code.funcs[frame.func.index()];
        if let Some((lib, address)) = unnamed::place(builder.profile(), frame, func) {
            let known = self.by_address.entry((lib, address));
            return *known.or_insert_with(|| {
                let func = unnamed::func_at(builder, lib, address);
                builder.append_func(func)
            });
        }
        *self.funcs[frame.func.index()].get_or_insert_with(|| builder.append_func(*func))
    }
}

/// Frames that get names.
struct Namer<'a> {
    code: &'a CodeTables,
    jit: &'a FxHashMap<LibId, JitSymbols>,
    /// By the lib's number.
    libs: Vec<NamedLib<'a>>,
    texts: Texts,
}

impl<'a> Namer<'a> {
    fn new(code: &'a CodeTables, names: &'a Names<'_>, libs: usize) -> Self {
        let lib = |lib| NamedLib {
            lib,
            symbols: Symbols::of(names.answers.of_lib(lib)),
            is_distinct: has_distinct_frames(code, &names.frames, lib),
        };
        let libs = (0..libs).map(LibId::from_index).map(lib).collect();
        Self { code, jit: &names.jit, libs, texts: Texts::default() }
    }

    /// Adds the frames of an address, given the number of its answer. Returns false if it has no name.
    fn add_frames(
        &mut self,
        frames: &mut Vec<FrameId>,
        builder: &mut ProfileBuilder,
        frame: &Frame,
        answer: Option<u32>,
    ) -> bool {
        let func = &self.code.funcs[frame.func.index()];
        let Some(lib) = func.lib else { return false };
        if let Some(symbols) = self.jit.get(&lib)
            && let Some(frame) = name_frame(builder, symbols, lib, frame)
        {
            frames.push(frame);
            return true;
        }
        let Some(answer) = answer else { return false };
        self.libs[lib.index()].add_frames(frames, builder, (frame, func), answer as usize, &mut self.texts)
    }
}

/// A lib whose frames get names.
struct NamedLib<'a> {
    lib: LibId,
    symbols: Symbols<'a>,
    /// Whether all of its frames stay distinct.
    is_distinct: bool,
}

impl NamedLib<'_> {
    /// Adds the frames of an answer. Returns false if the answer is empty. `func` is the frame's current
    /// function.
    fn add_frames(
        &mut self,
        frames: &mut Vec<FrameId>,
        builder: &mut ProfileBuilder,
        (frame, func): (&Frame, &Func),
        answer: usize,
        texts: &mut Texts,
    ) -> bool {
        let info = &self.symbols.infos[answer];
        if info.frames.is_empty() {
            return false;
        }
        let native_symbol = self.symbols.native_symbol(builder, self.lib, answer, texts);
        if let Some(name) = plain_name(info) {
            let func = self.symbols.plain_func(builder, self.lib, (answer, name), texts);
            let (inline_depth, source) = (0, None);
            let nyquist_symbols::SourceFrame { line, column, .. } = info.frames[0];
            let named = Frame { func, inline_depth, native_symbol, source, line, column, ..*frame };
            frames.push(self.add(builder, named));
            return true;
        }
        let place = unnamed::place(builder.profile(), frame, func);
        let nameless =
            |builder: &mut _| place.map_or(func.name, |(_, address)| unnamed::name_at(builder, address));
        let depths = 0..=u16::MAX;
        let outermost_first = info.frames.iter().rev().zip(depths);
        frames.extend(outermost_first.map(|(named, inline_depth)| {
            let name = match &named.function {
                Some(name) => texts.string(builder, name),
                None => nameless(builder),
            };
            let mut source = |file: &Option<_>| {
                let filename = texts.path(builder, file.as_ref()?);
                Some(builder.intern_source(Source { filename }))
            };
            let (of_line, declared_in) = (source(&named.file), source(&named.declared_in));
            let of_func = declared_in.or(of_line);
            let lib = Some(self.lib);
            let func = builder.intern_func(Func { source: of_func, ..Func::new(name, lib) });
            let source = of_line.filter(|_| declared_in.is_some() && named.line.is_some());
            let (line, column) = (named.line, named.column);
            self.add(builder, Frame { func, inline_depth, native_symbol, source, line, column, ..*frame })
        }));
        true
    }

    fn add(&self, builder: &mut ProfileBuilder, frame: Frame) -> FrameId {
        if self.is_distinct { builder.append_frame(frame) } else { builder.intern_frame(frame) }
    }
}

/// Whether no two frames of a lib are at one address and in one category. Then they stay distinct frames.
fn has_distinct_frames(code: &CodeTables, frames: &FramesByAddress, lib: LibId) -> bool {
    let category = |frame: usize| code.frames[frame].category;
    let mut frames = frames.of_lib(lib).peekable();
    while let Some((address, frame)) = frames.next() {
        // If three frames are at one address, the first and the last may have the same category.
        let Some((_, second)) = frames.next_if(|(next, _)| *next == address) else { continue };
        let has_third = frames.peek().is_some_and(|(next, _)| *next == address);
        if has_third || category(frame) == category(second) {
            return false;
        }
    }
    true
}

/// The name of the symbol, if an answer has no further information.
fn plain_name(info: &AddressInfo) -> Option<&Arc<str>> {
    let (Some(symbol), [frame]) = (&info.symbol, info.frames.as_slice()) else { return None };
    let name = frame.function.as_ref().filter(|name| Arc::ptr_eq(name, &symbol.name));
    name.filter(|_| frame.file.is_none() && frame.declared_in.is_none())
}

/// The answers of one lib, and the functions of their symbols so far.
struct Symbols<'a> {
    infos: &'a [Arc<AddressInfo>],
    /// The number of the symbol of each answer. Consecutive answers mostly share a symbol.
    numbers: Vec<u32>,
    native: Vec<Option<NativeSymbolId>>,
    /// The function of each symbol without further information.
    funcs: Vec<Option<FuncId>>,
}

impl<'a> Symbols<'a> {
    fn of(infos: &'a [Arc<AddressInfo>]) -> Self {
        let mut numbers: Vec<u32> = Vec::with_capacity(infos.len());
        let mut last = 0;
        for (at, info) in infos.iter().enumerate() {
            let is_new = at > 0 && !is_same_symbol(&infos[at - 1], info);
            last += u32::from(is_new);
            numbers.push(last);
        }
        let count = last as usize + 1;
        Self { infos, numbers, native: vec![None; count], funcs: vec![None; count] }
    }

    fn native_symbol(
        &mut self,
        builder: &mut ProfileBuilder,
        lib: LibId,
        answer: usize,
        texts: &mut Texts,
    ) -> Option<NativeSymbolId> {
        let Symbol { name, address, size } = self.infos[answer].symbol.as_ref()?;
        let known = &mut self.native[self.numbers[answer] as usize];
        Some(*known.get_or_insert_with(|| {
            let name = texts.string(builder, name);
            builder.intern_native_symbol(NativeSymbol { lib, address: address.0, size: *size, name })
        }))
    }

    /// The function of an answer that only has a symbol, with this name.
    fn plain_func(
        &mut self,
        builder: &mut ProfileBuilder,
        lib: LibId,
        (answer, name): (usize, &Arc<str>),
        texts: &mut Texts,
    ) -> FuncId {
        let known = &mut self.funcs[self.numbers[answer] as usize];
        *known.get_or_insert_with(|| {
            let name = texts.string(builder, name);
            builder.intern_func(Func::new(name, Some(lib)))
        })
    }
}

/// Whether two answers have the same symbol. Answers that were looked up at different times do not share
/// their strings.
fn is_same_symbol(one: &Arc<AddressInfo>, other: &Arc<AddressInfo>) -> bool {
    match (&one.symbol, &other.symbol) {
        _ if Arc::ptr_eq(one, other) => true,
        (Some(one), Some(other)) => {
            (one.address, one.size) == (other.address, other.size) && one.name == other.name
        }
        (None, None) => true,
        _ => false,
    }
}

/// Strings that are in the profile already, by their addresses in memory. Most answers share their strings
/// with others, and finding a string by its text costs three times as much.
#[derive(Default)]
struct Texts {
    known: FxHashMap<*const u8, StringId>,
    paths: FxHashMap<*const u8, StringId>,
}

impl Texts {
    fn string(&mut self, builder: &mut ProfileBuilder, text: &Arc<str>) -> StringId {
        *self.known.entry(text.as_ptr()).or_insert_with(|| builder.intern_string(text))
    }

    /// The string of a source file's path, in the spelling of the Firefox Profiler.
    fn path(&mut self, builder: &mut ProfileBuilder, path: &Arc<str>) -> StringId {
        let known = self.paths.entry(path.as_ptr());
        *known.or_insert_with(|| builder.intern_string(&special_source_path(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::lib_source::LibSource;
    use crate::symbolicate::{Progress, Symbols as Lookup, symbolicate};
    use nyquist_object::{DebugId, RelativeAddress};
    use nyquist_profile::{Lib, Meta, Process, Sample, Thread, firefox};
    use nyquist_symbols::{self as symbols, Finder, KernelError, ModuleRequest, Origin, ProvidedAnswers};
    use std::num::NonZeroUsize;

    /// A profile of one address of a lib.
    fn unnamed(address: RelativeAddress) -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let name = builder.intern_string("?");
        let func = builder.intern_func(Func::new(name, Some(lib)));
        let frame = builder.intern_frame(Frame { address: Some(address.0), ..Frame::label(func) });
        let stack = builder.intern_stack(None, frame);
        builder.add_sample(thread, Sample::new(0, Some(stack), 1));
        builder.finish()
    }

    /// The source files of a profile with one frame. Its function is declared in one file, and its line is in
    /// the other.
    fn written_sources(file: &str, declared_in: Option<&str>) -> Vec<String> {
        let id = DebugId::from_breakpad("6C974EBE5232EE469D6B7847A670B2A90").unwrap();
        let frame = symbols::SourceFrame {
            function: Some("function".into()),
            file: Some(file.into()),
            declared_in: declared_in.map(Into::into),
            line: Some(7),
            ..symbols::SourceFrame::default()
        };
        let symbol = Symbol { name: "function".into(), address: RelativeAddress(0x100), size: Some(0x10) };
        let info = AddressInfo { symbol: Some(symbol), frames: vec![frame], origin: Origin::Provided };
        let mut provided = ProvidedAnswers::of_file("/proc/nonexistent");
        provided.add("app", id, [(RelativeAddress(0x104), Arc::new(info))]);
        let finder = Finder::default().with_provided_answers(Some(provided));
        let request =
            ModuleRequest { debug_id: Some(id), debug_name: "app".into(), ..ModuleRequest::default() };
        let sources = [(LibId::from_index(0), LibSource::File(request))];
        let lookup =
            Lookup { finder: &finder, kernel: |_| Err(KernelError::Empty), threads: NonZeroUsize::MIN };
        let named = symbolicate(unnamed(RelativeAddress(0x104)), &sources, lookup, &Progress::default());
        let mut written = Vec::new();
        firefox::write(&named.profile, firefox::WriteOptions::default(), &mut written).unwrap();
        let read = firefox::read(&written[..]).unwrap();
        let name = |source: &Source| read.string(source.filename).to_owned();
        read.sources().iter().map(name).collect()
    }

    #[test]
    fn a_profile_has_special_paths() {
        let commit = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        let of_library = format!("/rustc/{commit}/library/core/src/lib.rs");
        let special = format!("git:github.com/rust-lang/rust:library/core/src/lib.rs:{commit}");
        assert_eq!(written_sources(&of_library, None), [&*special]);
        let of_crate = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/a-1.0.0/src/lib.rs";
        let mut both = written_sources(&of_library, Some(of_crate));
        both.sort();
        assert_eq!(both, ["cargo:index.crates.io-1949cf8c6b5b557f:a-1.0.0:src/lib.rs", &special]);
        assert_eq!(written_sources("/src/a.c", None), ["/src/a.c"]);
        let of_mozilla = "hg:hg.mozilla.org/mozilla-central:a.cpp:997f00815e6b";
        assert_eq!(written_sources(of_mozilla, None), [of_mozilla]);
    }
}
