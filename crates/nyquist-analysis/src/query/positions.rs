//! Self and total amounts by source line and by instruction.

use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::amount::Amount;
use crate::index::forest::NONE;
use crate::index::orders::{self, Position};
use crate::index::self_and_total::{self, SelfAndTotal};
use crate::parallel;
use crate::view::View;
use nyquist_profile::{Frame, FuncId, LibId, NativeSymbolId, SourceId};
use rustc_hash::FxHashMap;

/// The code to compute amounts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSelection {
    /// All.
    All,
    /// A function, wherever it was inlined.
    Function(FuncId),
    /// The machine code of a symbol: its function and the functions inlined into it.
    Symbol(NativeSymbolId),
}

/// The amounts of a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineAmounts<'a> {
    /// The path of the source file, if known.
    pub file: Option<&'a str>,
    /// The line, from 1, if known.
    pub line: Option<u32>,
    /// Its self amount.
    pub self_amount: Amount,
    /// Its total amount. A sample counts once, even with recursion.
    pub total: Amount,
}

/// The amounts of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionAmounts<'a> {
    /// The lib.
    pub lib: LibId,
    /// Its name.
    pub lib_name: &'a str,
    /// The relative address that was looked up: that of an executed instruction, or a byte of the call
    /// instruction.
    pub address: u32,
    /// Its self amount.
    pub self_amount: Amount,
    /// Its total amount. A sample counts once, even with recursion.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The amounts of each source line, the one with the greatest self weight first. O(nodes + frames).
    pub fn lines(&self, code: CodeSelection) -> Vec<LineAmounts<'a>> {
        if code == CodeSelection::All {
            return self.all_lines();
        }
        let profile = self.profile();
        let file = |source: SourceId| profile.string(profile.source(source).filename);
        let mut amounts = self.by_position(code, |frame| Some(orders::line_of(profile, frame)));
        amounts.sort_unstable_by(|((a_source, a_line), a), ((b_source, b_line), b)| {
            let by_amount = (b.own, b.total).cmp(&(a.own, a.total));
            // Most lines with the same amounts are in the same file, so their paths need not be compared.
            let by_file = || {
                if a_source == b_source {
                    Ordering::Equal
                } else {
                    a_source.map(file).cmp(&b_source.map(file))
                }
            };
            by_amount.then_with(by_file).then_with(|| a_line.cmp(b_line))
        });
        amounts.into_iter().map(|(position, amounts)| self.line(position, amounts)).collect()
    }

    /// The same for all code, which may have hundreds of thousands of lines.
    fn all_lines(&self) -> Vec<LineAmounts<'a>> {
        let order = self.index.lines();
        let amounts = if self.derived.is_original() {
            order.keys.sum_up(self.node_sums())
        } else {
            let count = order.lines.len();
            self_and_total::by_key(self.node_sums(), count, |node| {
                self.has_code(node).then(|| order.of_frame[self.frame_index_of(node)] as usize)
            })
        };
        let sampled = amounts.iter().enumerate().filter(|(_, amounts)| !amounts.total.is_zero());
        let mut places: Vec<_> =
            sampled.map(|(line, amounts)| (Reverse((amounts.own, amounts.total)), line as u32)).collect();
        parallel::sort(&mut places);
        let row = |&(_, line): &(_, u32)| self.line(order.lines[line as usize], amounts[line as usize]);
        parallel::map(&places, parallel::ROWS_WORTH_SHARING, row)
    }

    fn line(&self, (source, line): Position, amounts: SelfAndTotal) -> LineAmounts<'a> {
        let profile = self.profile();
        let file = source.map(|source| profile.string(profile.source(source).filename));
        LineAmounts { file, line, self_amount: amounts.own, total: amounts.total }
    }

    /// Whether a node belongs to a function. A collapsed lib has no line and no address.
    fn has_code(&self, node: usize) -> bool {
        (self.forest().func[node] as usize) < self.profile().funcs().len()
    }

    /// The index of a node's frame in the profile.
    fn frame_index_of(&self, node: usize) -> usize {
        self.profile().stacks()[self.forest().stack[node] as usize].frame.index()
    }

    /// The amounts of each instruction, the one with the greatest self weight first. O(nodes + frames).
    pub fn instructions(&self, code: CodeSelection) -> Vec<InstructionAmounts<'a>> {
        let profile = self.profile();
        let position = |frame: &Frame| Some((profile.func(frame.func).lib?, frame.address?));
        let amounts = self.by_position(code, position).into_iter();
        let mut instructions: Vec<_> = amounts
            .map(|((lib, address), amounts)| InstructionAmounts {
                lib,
                lib_name: &profile.lib(lib).name,
                address,
                self_amount: amounts.own,
                total: amounts.total,
            })
            .collect();
        instructions.sort_by(|a, b| {
            let by_amount = (b.self_amount, b.total).cmp(&(a.self_amount, a.total));
            by_amount.then_with(|| (a.lib, a.address).cmp(&(b.lib, b.address)))
        });
        instructions
    }

    fn by_position<At: Copy + Eq + Hash>(
        &self,
        code: CodeSelection,
        position: impl Fn(&Frame) -> Option<At>,
    ) -> Vec<(At, SelfAndTotal)> {
        let profile = self.profile();
        let is_requested = |frame: &Frame| match code {
            CodeSelection::All => true,
            CodeSelection::Function(func) => frame.func == func,
            CodeSelection::Symbol(symbol) => frame.native_symbol == Some(symbol),
        };
        let mut positions = Vec::new();
        let mut keys = FxHashMap::default();
        let mut key_of = |position: At| match keys.entry(position) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                positions.push(position);
                *entry.insert(positions.len() as u32 - 1)
            }
        };
        let frames = profile.frames().iter();
        // As small as possible, because it is looked up for every node.
        let key_of_frame: Vec<u32> = frames
            .map(|frame| position(frame).filter(|_| is_requested(frame)).map_or(NONE, &mut key_of))
            .collect();
        let amounts = self_and_total::by_key(self.node_sums(), positions.len(), |node| {
            let key = key_of_frame[self.frame_index_of(node)];
            (key != NONE && self.has_code(node)).then_some(key as usize)
        });
        let sampled = positions.into_iter().zip(amounts);
        sampled.filter(|(_, amounts)| !amounts.total.is_zero()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, func, with_view};

    #[test]
    fn lines_and_instructions_count_once_a_sample() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("main#1@app f#10@app g#20@lib", 1);
        test.sample("main#1@app f#11@app", 2);
        test.sample("main#1@app f#10@app f#10@app f#11@app", 4);
        let profile = test.finish();
        with_view(&profile, &Selection::default(), |view| {
            let code = CodeSelection::Function(func(&profile, "f"));
            let lines = view.lines(code).into_iter();
            let lines: Vec<_> =
                lines.map(|row| (row.line.unwrap(), row.self_amount.weight, row.total.weight)).collect();
            assert_eq!(lines, [(11, 6, 6), (10, 0, 5)]);
            let instructions = view.instructions(CodeSelection::All).into_iter();
            let instructions: Vec<_> = instructions
                .map(|row| (row.lib_name, row.address, row.self_amount.weight, row.total.weight))
                .collect();
            assert_eq!(
                instructions,
                [("app", 0xb0, 6, 6), ("lib", 0x140, 1, 1), ("app", 0x10, 0, 7), ("app", 0xa0, 0, 5)]
            );
        });
    }
}
