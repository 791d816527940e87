//! Stacks of addresses, and of the names that Go writes after them.

use nyquist_profile::{FrameId, StackId, ThreadIndex};
use rustc_hash::FxHashMap;

use super::maps::Maps;
use crate::import::{CodePosition, Importer, ThreadName};

/// A stack in a file, the innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LegacyStack<'a> {
    pub(super) addresses: Vec<u64>,
    /// Whether the first address is an instruction pointer, and not a return address.
    pub(super) is_interrupted: bool,
    /// Go's own names, which are used instead of the addresses.
    pub(super) named: Vec<NamedFunction<'a>>,
}

/// A function as Go or Java names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedFunction<'a> {
    pub(super) name: &'a str,
    pub(super) file: &'a str,
    pub(super) line: Option<u32>,
}

/// Reads a line of `#`, an address, a name with an offset (`main.main.func1+0x24`) and a place
/// (`/src/main.go:10`), with tabs between them. `None` for a line that is no frame.
pub(super) fn named(line: &str) -> Option<NamedFunction<'_>> {
    let mut words = line.strip_prefix('#')?.split('\t').map(str::trim).filter(|word| !word.is_empty());
    let address = words.next()?.strip_prefix("0x")?;
    u64::from_str_radix(address, 16).ok()?;
    let place = words.next().unwrap_or_default();
    let name = place.rsplit_once("+0x").map_or(place, |(name, _)| name);
    let source = words.next().unwrap_or_default();
    let (file, line) = source.rsplit_once(':').unwrap_or((source, ""));
    Some(NamedFunction { name, file, line: line.parse().ok() })
}

/// Makes frames and samples of a single thread, because these formats have no threads.
pub(super) struct LegacySamples<'a> {
    pub(super) importer: Importer,
    pub(super) maps: Maps,
    /// The names of addresses, if the file has them.
    pub(super) names: FxHashMap<u64, NamedFunction<'a>>,
    frames: FxHashMap<u64, FrameId>,
    thread: Option<ThreadIndex>,
    clock: u64,
}

impl<'a> LegacySamples<'a> {
    pub(super) fn new(importer: Importer, mut maps: Maps) -> Self {
        maps.finish();
        let (names, frames) = (FxHashMap::default(), FxHashMap::default());
        Self { importer, maps, names, frames, thread: None, clock: 0 }
    }

    /// Adds a sample with this amount. Samples follow each other in time.
    pub(super) fn add(&mut self, stack: &LegacyStack<'a>, amount: u64) {
        let stack = self.stack(stack);
        let thread = self.thread();
        self.importer.span(thread, self.clock, (stack, false), amount);
        self.clock = self.clock.saturating_add(amount);
    }

    fn thread(&mut self) -> ThreadIndex {
        if let Some(thread) = self.thread {
            return thread;
        }
        let mut program = self.maps.program().rsplit('/').next().unwrap_or_default().to_owned();
        let product = &mut self.importer.meta_mut().product;
        if program.is_empty() {
            program.clone_from(product);
        } else {
            product.clone_from(&program);
        }
        let name = ThreadName { pid: "0", process: &program, tid: "0", thread: &program };
        *self.thread.insert(self.importer.thread(name))
    }

    fn stack(&mut self, stack: &LegacyStack<'a>) -> Option<StackId> {
        let mut node = None;
        if stack.named.is_empty() {
            for (place, &address) in stack.addresses.iter().enumerate().rev() {
                // A return address is after the call.
                let is_return = place > 0 || !stack.is_interrupted;
                let frame = match self.names.get(&address).copied() {
                    Some(named) => self.named_frame(named),
                    None => self.frame(if is_return { address.saturating_sub(1) } else { address }),
                };
                node = Some(self.importer.stack(node, frame));
            }
        }
        for &named in stack.named.iter().rev() {
            let frame = self.named_frame(named);
            node = Some(self.importer.stack(node, frame));
        }
        node
    }

    fn named_frame(&mut self, NamedFunction { name, file, line }: NamedFunction<'a>) -> FrameId {
        self.importer.frame(&CodePosition { name, file: Some(file), line, ..CodePosition::default() })
    }

    fn frame(&mut self, address: u64) -> FrameId {
        if let Some(&frame) = self.frames.get(&address) {
            return frame;
        }
        let frame = match self.maps.place(&mut self.importer, address) {
            Some((lib, address)) => {
                // The mapped files may have the name.
                self.importer.meta_mut().symbolicated = false;
                self.importer.frame(&CodePosition {
                    lib: Some(lib),
                    address: Some(address),
                    ..CodePosition::default()
                })
            }
            None => self
                .importer
                .frame(&CodePosition { name: &format!("{address:#x}"), ..CodePosition::default() }),
        };
        self.frames.insert(address, frame);
        frame
    }
}
