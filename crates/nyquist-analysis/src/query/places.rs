//! Weights of a function's source lines and instructions, with the functions that are inlined into it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nyquist_profile::{Frame, FuncId, LibId, NativeSymbolId, Profile, SourceId, StackId};

use crate::view::View;

/// The weight of a place, in numbers of sampling intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceWeight {
    /// The self weight.
    pub own: u64,
    /// The total weight, with the functions called from there.
    pub total: u64,
}

/// An address in a lib.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibAddress {
    /// The lib.
    pub lib: LibId,
    /// The address, relative to the lib's base.
    pub offset: u32,
}

/// The weights of a function by place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceWeights {
    /// The whole function: its own samples, and with the samples of functions called from it.
    pub function: PlaceWeight,
    /// By file and line; the lines of inlined functions are in the files of these.
    pub lines: BTreeMap<(SourceId, u32), PlaceWeight>,
    /// By instruction.
    pub addresses: BTreeMap<LibAddress, PlaceWeight>,
    /// The symbols that contain the function's instructions, with its weight in each. If the function was
    /// inlined, they are the symbols of its callers.
    pub symbols: BTreeMap<NativeSymbolId, PlaceWeight>,
}

impl View<'_> {
    /// The weights of some functions by place. It uses the stacks before filters and transforms. A sample
    /// counts once per place, however deep the recursion. O(samples + stacks × depth).
    pub fn places(&self, funcs: &BTreeSet<FuncId>) -> PlaceWeights {
        self.places_by(funcs, |weight| weight)
    }

    /// The same with another value computed from the weight of each sample.
    pub(crate) fn places_by(&self, funcs: &BTreeSet<FuncId>, value: impl Fn(u64) -> u64) -> PlaceWeights {
        let mut stacks: BTreeMap<StackId, u64> = BTreeMap::new();
        for sample in self.samples() {
            if let Some(stack) = sample.sample.stack {
                let sum = stacks.entry(stack).or_default();
                *sum = sum.saturating_add(value(sample.amount.weight));
            }
        }
        places(self.profile(), stacks.into_iter(), funcs)
    }
}

/// Sums up stacks; each is given once, with its weight.
fn places(
    profile: &Profile,
    stacks: impl Iterator<Item = (StackId, u64)>,
    funcs: &BTreeSet<FuncId>,
) -> PlaceWeights {
    let mut places = PlaceWeights::default();
    let mut found = StackMatches::default();
    for (stack, weight) in stacks {
        found.collect(profile, stack, funcs);
        if found.is_in_function {
            places.add(&found, weight);
        }
    }
    places
}

/// The places of the functions in one stack.
#[derive(Default)]
struct StackMatches {
    is_in_function: bool,
    /// Whether the innermost frame belongs to the function itself.
    is_own: bool,
    lines: BTreeSet<(SourceId, u32)>,
    addresses: BTreeSet<LibAddress>,
    symbols: BTreeSet<NativeSymbolId>,
    own_line: Option<(SourceId, u32)>,
    own_address: Option<LibAddress>,
    own_symbol: Option<NativeSymbolId>,
}

impl StackMatches {
    fn collect(&mut self, profile: &Profile, stack: StackId, funcs: &BTreeSet<FuncId>) {
        *self = Self::default();
        // The frames that are inlined into the current frame: those further in at its address.
        let mut inlined: Vec<(SourceId, u32)> = Vec::new();
        let mut is_innermost_address = true;
        let mut inner: Option<&Frame> = None;
        for frame in profile.stack_frames(stack) {
            if inner.is_some_and(|inner| !is_inlined_into(profile, inner, frame)) {
                inlined.clear();
                is_innermost_address = false;
            }
            inlined.extend(line(profile, frame));
            if funcs.contains(&frame.func) {
                self.note(profile, frame, &inlined, is_innermost_address, inner.is_none());
            }
            inner = Some(frame);
        }
    }

    fn note(
        &mut self,
        profile: &Profile,
        frame: &Frame,
        lines: &[(SourceId, u32)],
        is_innermost_address: bool,
        is_own: bool,
    ) {
        self.is_in_function = true;
        self.is_own |= is_own;
        self.lines.extend(lines);
        let lib = profile.func(frame.func).lib;
        let address = lib.zip(frame.address).map(|(lib, offset)| LibAddress { lib, offset });
        self.addresses.extend(address);
        self.symbols.extend(frame.native_symbol);
        if is_innermost_address {
            self.own_line = lines.first().copied();
            self.own_address = address;
            self.own_symbol = frame.native_symbol;
        }
    }
}

/// Whether `inner`, which was called by `outer`, is part of the machine code of `outer`.
fn is_inlined_into(profile: &Profile, inner: &Frame, outer: &Frame) -> bool {
    inner.inline_depth > 0
        && inner.inline_depth == outer.inline_depth + 1
        && inner.address == outer.address
        && profile.func(inner.func).lib == profile.func(outer.func).lib
}

/// The file and line of a frame.
fn line(profile: &Profile, frame: &Frame) -> Option<(SourceId, u32)> {
    profile.frame_source(frame).zip(profile.frame_line(frame))
}

impl PlaceWeights {
    /// The self weight of the function plus that of the functions inlined into it.
    pub fn with_inlined(&self) -> u64 {
        self.addresses.values().map(|weight| weight.own).fold(0, u64::saturating_add)
    }

    /// The weights of the addresses in a part of a lib, by their offsets.
    pub fn in_lib(&self, lib: LibId, offsets: Range<u32>) -> impl Iterator<Item = (u32, PlaceWeight)> {
        let at = |offset| LibAddress { lib, offset };
        let addresses = self.addresses.range(at(offsets.start)..at(offsets.end.max(offsets.start)));
        addresses.map(|(address, &weight)| (address.offset, weight))
    }

    /// The symbols that contain the function's instructions, the one with the greatest self weight first. O(symbols ×
    /// log symbols).
    pub fn hottest_symbols(&self) -> Vec<NativeSymbolId> {
        let mut symbols: Vec<_> = self.symbols.iter().collect();
        symbols.sort_by_key(|(_, weight)| Reverse((weight.own, weight.total)));
        symbols.into_iter().map(|(&symbol, _)| symbol).collect()
    }

    /// The weights of instructions that follow each other in a lib. `starts` are their offsets in ascending order,
    /// and the last one ends at `end`. An instruction has the weights of all its bytes, because the address of a
    /// caller is the last byte of its call instruction. O(addresses × log instructions).
    pub fn by_instruction(&self, lib: LibId, starts: &[u32], end: u32) -> Vec<PlaceWeight> {
        let mut weights = vec![PlaceWeight::default(); starts.len()];
        let first = starts.first().map_or(end, |&first| first);
        for (offset, weight) in self.in_lib(lib, first..end) {
            let after = starts.partition_point(|&start| start <= offset);
            if let Some(sum) = after.checked_sub(1).and_then(|index| weights.get_mut(index)) {
                sum.own = sum.own.saturating_add(weight.own);
                sum.total = sum.total.saturating_add(weight.total);
            }
        }
        weights
    }

    fn add(&mut self, found: &StackMatches, weight: u64) {
        self.function.total = self.function.total.saturating_add(weight);
        if found.is_own {
            self.function.own = self.function.own.saturating_add(weight);
        }
        add_all(&mut self.lines, &found.lines, found.own_line, weight);
        add_all(&mut self.addresses, &found.addresses, found.own_address, weight);
        add_all(&mut self.symbols, &found.symbols, found.own_symbol, weight);
    }
}

fn add_all<K: Ord + Copy>(
    sums: &mut BTreeMap<K, PlaceWeight>,
    all: &BTreeSet<K>,
    own: Option<K>,
    weight: u64,
) {
    for &place in all {
        let sum = &mut sums.entry(place).or_default().total;
        *sum = sum.saturating_add(weight);
    }
    if let Some(place) = own {
        let sum = &mut sums.entry(place).or_default().own;
        *sum = sum.saturating_add(weight);
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Func, Lib, Meta, ProfileBuilder, Source};

    use super::*;

    /// A profile with `main` in a.c, and `inner` of b.h that is inlined into it.
    struct TestProfile {
        builder: ProfileBuilder,
        lib: LibId,
        files: [SourceId; 2],
        funcs: [FuncId; 2],
    }

    impl TestProfile {
        fn new() -> Self {
            let mut builder = ProfileBuilder::new(Meta::default());
            let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
            let files = ["/a.c", "/b.h"].map(|name| {
                let filename = builder.intern_string(name);
                builder.intern_source(Source { filename })
            });
            let funcs = [("main", files[0]), ("inner", files[1])].map(|(name, source)| {
                let name = builder.intern_string(name);
                builder.intern_func(Func { source: Some(source), ..Func::new(name, Some(lib)) })
            });
            Self { builder, lib, files, funcs }
        }

        /// Pushes a frame of a function at an address and a line.
        fn push(
            &mut self,
            prefix: Option<StackId>,
            func: usize,
            address: u32,
            line: u32,
            inline_depth: u16,
        ) -> StackId {
            let frame = Frame {
                address: Some(address),
                inline_depth,
                line: Some(line),
                ..Frame::label(self.funcs[func])
            };
            let frame = self.builder.intern_frame(frame);
            self.builder.intern_stack(prefix, frame)
        }

        fn at(&self, offset: u32) -> LibAddress {
            LibAddress { lib: self.lib, offset }
        }
    }

    const fn weight(own: u64, total: u64) -> PlaceWeight {
        PlaceWeight { own, total }
    }

    #[test]
    fn inlined_code_is_of_its_own_file_and_line() {
        let mut made = TestProfile::new();
        let outer = made.push(None, 0, 0x10, 5, 0);
        let inner = made.push(Some(outer), 1, 0x10, 70, 1);
        let own = made.push(None, 0, 0x20, 6, 0);
        let funcs = BTreeSet::from([made.funcs[0]]);
        let found = places(made.builder.profile(), [(inner, 3), (own, 2)].into_iter(), &funcs);
        assert_eq!((found.function, found.with_inlined()), (weight(2, 5), 5));
        let lines = [
            ((made.files[0], 5), weight(0, 3)),
            ((made.files[0], 6), weight(2, 2)),
            ((made.files[1], 70), weight(3, 3)),
        ];
        assert_eq!(found.lines, BTreeMap::from(lines));
        assert_eq!(
            found.addresses,
            BTreeMap::from([(made.at(0x10), weight(3, 3)), (made.at(0x20), weight(2, 2))])
        );
    }

    #[test]
    fn addresses_are_had_by_part_of_a_lib() {
        let mut made = TestProfile::new();
        let stacks = [0x10, 0x20, 0x30].map(|address| (made.push(None, 0, address, 5, 0), 1));
        let funcs = BTreeSet::from([made.funcs[0]]);
        let found = places(made.builder.profile(), stacks.into_iter(), &funcs);
        let offsets = |range| found.in_lib(made.lib, range).map(|(offset, _)| offset).collect::<Vec<_>>();
        assert_eq!(offsets(0x10..0x30), [0x10, 0x20]);
        // The part may end at the end of the address space. In a malformed profile it may end before it
        // begins.
        #[expect(clippy::reversed_empty_ranges)]
        for empty in [0x31..u32::MAX, 0x20..0x10] {
            assert!(offsets(empty).is_empty());
        }
    }

    #[test]
    fn an_instruction_has_the_weights_of_its_bytes() {
        let mut made = TestProfile::new();
        let caller = made.push(None, 0, 0x14, 5, 0);
        let callee = made.push(Some(caller), 1, 0x90, 70, 0);
        let own = [0x0f, 0x10, 0x15, 0x1f, 0x20].map(|address| (made.push(None, 0, address, 5, 0), 1));
        let funcs = BTreeSet::from([made.funcs[0]]);
        let stacks = own.into_iter().chain([(callee, 4)]);
        let found = places(made.builder.profile(), stacks, &funcs);
        // The addresses before the first instruction and from the end on are of other code.
        let weights = found.by_instruction(made.lib, &[0x10, 0x15, 0x17], 0x20);
        assert_eq!(weights, [weight(1, 5), weight(1, 1), weight(1, 1)]);
        assert!(found.by_instruction(made.lib, &[], 0x20).is_empty());
        assert_eq!(found.by_instruction(made.lib, &[0x15], 0x10), [weight(0, 0)]);
    }

    #[test]
    fn the_symbol_with_most_own_time_comes_first() {
        let symbols: Vec<_> = (0..4).map(NativeSymbolId::from_index).collect();
        let weights = [weight(1, 9), weight(5, 5), weight(1, 10), weight(0, 30)];
        let symbols_of = |order: [usize; 4]| order.map(|index| symbols[index]);
        let found = PlaceWeights {
            symbols: symbols.iter().copied().zip(weights).collect(),
            ..PlaceWeights::default()
        };
        assert_eq!(found.hottest_symbols(), symbols_of([1, 2, 0, 3]));
    }

    #[test]
    fn callees_count_in_the_calling_line_alone() {
        let mut made = TestProfile::new();
        let caller = made.push(None, 0, 0x10, 5, 0);
        let callee = made.push(Some(caller), 1, 0x90, 70, 0);
        let funcs = BTreeSet::from([made.funcs[0]]);
        let found = places(made.builder.profile(), [(callee, 4)].into_iter(), &funcs);
        assert_eq!(found.function, weight(0, 4));
        assert_eq!(found.lines, BTreeMap::from([((made.files[0], 5), weight(0, 4))]));
        assert_eq!(found.addresses, BTreeMap::from([(made.at(0x10), weight(0, 4))]));
    }

    #[test]
    fn recursion_counts_once() {
        let mut made = TestProfile::new();
        let first = made.push(None, 0, 0x10, 5, 0);
        let second = made.push(Some(first), 0, 0x10, 5, 0);
        let third = made.push(Some(second), 0, 0x20, 6, 0);
        let funcs = BTreeSet::from([made.funcs[0]]);
        let found = places(made.builder.profile(), [(third, 1)].into_iter(), &funcs);
        assert_eq!(found.function, weight(1, 1));
        let lines = [((made.files[0], 5), weight(0, 1)), ((made.files[0], 6), weight(1, 1))];
        assert_eq!(found.lines, BTreeMap::from(lines));
    }
}
