//! Self and total amounts by source line and by instruction.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use nyquist_profile::{Frame, FuncId, LibId, NativeSymbolId, SourceId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::amount::Amount;
use crate::once::{self, SelfAndTotal};
use crate::view::View;

/// Which code is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All.
    All,
    /// A function, wherever it was inlined.
    Function(FuncId),
    /// What a symbol's machine code was made of: its function and what was inlined into it.
    Symbol(NativeSymbolId),
}

/// What a source line takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line<'a> {
    /// The path of the source file, where known.
    pub file: Option<&'a str>,
    /// The line, from 1, where known.
    pub line: Option<u32>,
    /// What it takes itself.
    #[serde(rename = "self")]
    pub self_amount: Amount,
    /// What it takes with what it calls. Recursion counts once a sample.
    pub total: Amount,
}

/// What an instruction takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instruction<'a> {
    /// The lib.
    pub lib: LibId,
    /// Its name.
    pub lib_name: &'a str,
    /// The relative address that was looked up: that of an executed instruction, or a byte of the call instruction.
    pub address: u32,
    /// What it takes itself.
    #[serde(rename = "self")]
    pub self_amount: Amount,
    /// What it takes with what it calls. Recursion counts once a sample.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// What each source line takes, the one with the greatest self weight first. O(nodes + frames).
    pub fn lines(&self, code: Code) -> Vec<Line<'a>> {
        let profile = self.profile();
        let position = |frame: &Frame| {
            let source: Option<SourceId> = profile.func(frame.func).source;
            Some((source, frame.line))
        };
        let amounts = self.by_position(code, position).into_iter();
        let mut lines: Vec<_> = amounts
            .map(|((source, line), amounts)| Line {
                file: source.map(|source| profile.string(profile.source(source).filename)),
                line,
                self_amount: amounts.own,
                total: amounts.total,
            })
            .collect();
        lines.sort_by(|a, b| {
            let by_amount = (b.self_amount, b.total).cmp(&(a.self_amount, a.total));
            by_amount.then_with(|| (a.file, a.line).cmp(&(b.file, b.line)))
        });
        lines
    }

    /// What each instruction takes, the one with the greatest self weight first. O(nodes + frames).
    pub fn instructions(&self, code: Code) -> Vec<Instruction<'a>> {
        let profile = self.profile();
        let position = |frame: &Frame| Some((profile.func(frame.func).lib?, frame.address?));
        let amounts = self.by_position(code, position).into_iter();
        let mut instructions: Vec<_> = amounts
            .map(|((lib, address), amounts)| Instruction {
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

    fn by_position<Position: Copy + Eq + Hash>(
        &self,
        code: Code,
        position: impl Fn(&Frame) -> Option<Position>,
    ) -> Vec<(Position, SelfAndTotal)> {
        let profile = self.profile();
        let is_asked = |frame: &Frame| match code {
            Code::All => true,
            Code::Function(func) => frame.func == func,
            Code::Symbol(symbol) => frame.native_symbol == Some(symbol),
        };
        let mut positions = Vec::new();
        let mut keys = FxHashMap::default();
        let mut key_of = |position: Position| match keys.entry(position) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                positions.push(position);
                *entry.insert(positions.len() - 1)
            }
        };
        let frames = profile.frames().iter();
        let key_of_frame: Vec<Option<usize>> =
            frames.map(|frame| position(frame).filter(|_| is_asked(frame)).map(&mut key_of)).collect();
        let forest = self.forest();
        let func_count = profile.funcs().len();
        let amounts = once::by_key(self, positions.len(), |node| {
            // A collapsed lib is at no line.
            let is_func = (forest.func[node] as usize) < func_count;
            let stack = &profile.stacks()[forest.stack[node] as usize];
            key_of_frame[stack.frame.index()].filter(|_| is_func)
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
            let code = Code::Function(func(&profile, "f"));
            let lines = view.lines(code).into_iter();
            let lines: Vec<_> =
                lines.map(|row| (row.line.unwrap(), row.self_amount.weight, row.total.weight)).collect();
            assert_eq!(lines, [(11, 6, 6), (10, 0, 5)]);
            let instructions = view.instructions(Code::All).into_iter();
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
