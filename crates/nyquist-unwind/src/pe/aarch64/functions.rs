//! The table of functions, `.pdata`, and the rows of their prologues and epilogues.

use super::codes::Operation;
use super::frame::rule;
use super::xdata_record::{Epilogue, XdataRecord};
use crate::Damage;
use crate::pe::compiled_function_table::{CompiledFunctionTable, extent, table_of_functions};
use crate::pe::image::PeImage;
use crate::rule_table::TableBuilder;
use nyquist_object::{ByteSource, Pe};
use std::collections::HashMap;
use std::ops::Range;

/// The size of an instruction in bytes.
const INSTRUCTION: u32 = 4;

/// A range of code that is described.
#[derive(Clone, Copy, Debug)]
struct RuntimeFunction {
    start: u32,
    end: u32,
    /// The number of its frame.
    frame: u32,
}

/// The operations that have to be undone to leave a function.
#[derive(Clone, Debug)]
struct FunctionFrame {
    /// Its range among all operations: those of the prologue, the last one first, and then those of
    /// epilogues.
    operations: Range<u32>,
    /// How many instructions its prologue has.
    prologue: u32,
    epilogues: Range<u32>,
}

/// The functions of an image, kept for steps that need all registers.
#[derive(Debug, Default)]
pub(crate) struct Arm64Functions {
    /// By address; none overlap.
    ranges: Vec<RuntimeFunction>,
    frames: Vec<FunctionFrame>,
    operations: Vec<Operation>,
    epilogues: Vec<Epilogue>,
}

/// How to undo the frame of one function at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm64FrameUndo<'a>(&'a [Operation]);

impl<'a> Arm64FrameUndo<'a> {
    /// The operations to be undone, in order.
    pub(super) fn operations(self) -> impl Iterator<Item = Operation> + 'a {
        self.0.iter().copied().take_while(|operation| *operation != Operation::End)
    }
}

impl Arm64Functions {
    /// How to undo the frame at an address. `None` if no described function is there.
    pub(crate) fn undo(&self, address: u32) -> Option<Arm64FrameUndo<'_>> {
        let after = self.ranges.partition_point(|function| function.start <= address);
        let function = self.ranges.get(after.checked_sub(1)?)?;
        let frame = self.frames.get(function.frame as usize).filter(|_| address < function.end)?;
        Some(Arm64FrameUndo(self.operations_at(frame, (address - function.start) / INSTRUCTION)))
    }

    /// The operations to be undone before an instruction of a function.
    fn operations_at(&self, frame: &FunctionFrame, instruction: u32) -> &[Operation] {
        let all = self.operations.get(frame.operations.start as usize..frame.operations.end as usize);
        let all = all.unwrap_or_default();
        if instruction < frame.prologue {
            return skip(all, frame.prologue - instruction);
        }
        let epilogues = self.epilogues_of(frame);
        let after = epilogues.partition_point(|epilogue| epilogue.start <= instruction);
        match after.checked_sub(1).and_then(|number| epilogues.get(number)) {
            Some(epilogue) if instruction - epilogue.start < epilogue.len => {
                let operations = all.get(epilogue.operation as usize..).unwrap_or_default();
                skip(operations, instruction - epilogue.start)
            }
            _ => all,
        }
    }

    fn epilogues_of(&self, frame: &FunctionFrame) -> &[Epilogue] {
        let range = frame.epilogues.start as usize..frame.epilogues.end as usize;
        self.epilogues.get(range).unwrap_or_default()
    }

    /// How many bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.ranges)
            + size_of_val(&*self.frames)
            + size_of_val(&*self.operations)
            + size_of_val(&*self.epilogues)
    }
}

/// The operations after those of `instructions` instructions, but not past the end.
fn skip(operations: &[Operation], instructions: u32) -> &[Operation] {
    let mut left = instructions;
    let skipped = operations.iter().take_while(|operation| {
        let is_skipped = left > 0 && !operation.is_end();
        left -= u32::from(is_skipped && operation.is_instruction());
        is_skipped
    });
    let skipped = skipped.count();
    operations.get(skipped..).unwrap_or_default()
}

/// Compiles the table of functions of an image whose code is at the addresses `code`.
pub(crate) fn compile<S: ByteSource>(
    pe: &Pe<S>,
    code: &[Range<u32>],
    damage: &mut Damage,
) -> CompiledFunctionTable<Arm64Functions> {
    let mut entries = table_of_functions(pe, damage).as_chunks().0.to_vec();
    entries.sort_by_key(|&[start, _]| start);
    let mut compiler = Arm64Compiler {
        image: PeImage::new(pe),
        functions: Arm64Functions::default(),
        known: HashMap::new(),
        builder: TableBuilder::new(4 * entries.len(), extent(code)),
        // Each operation takes at least one byte of the image.
        budget: u32::try_from(pe.source().len()).unwrap_or(u32::MAX),
    };
    for &[start, word] in &entries {
        let Some(section) = code.iter().find(|section| section.contains(&start)) else { continue };
        if let Err(reason) = compiler.function(start, word, section.end) {
            damage.add(|| format!("the function at {start:#x}: {reason}"));
        }
    }
    let covered = compiler.functions.ranges.iter().map(|function| function.start..function.end).collect();
    CompiledFunctionTable { table: compiler.builder.finish(), functions: compiler.functions, covered }
}

struct Arm64Compiler<'a, S> {
    image: PeImage<'a, S>,
    functions: Arm64Functions,
    /// The frames that were read and the lengths of their functions, by their words in the table.
    known: HashMap<u32, Option<(u32, u32)>>,
    builder: TableBuilder,
    /// How much more of the records may be read.
    budget: u32,
}

impl<S: ByteSource> Arm64Compiler<'_, S> {
    /// Adds a function and its rows. Code with an unusable record is treated as uncovered.
    fn function(&mut self, start: u32, word: u32, limit: u32) -> Result<(), &'static str> {
        if !self.known.contains_key(&word) {
            let frame = self.frame(word);
            let result = frame.as_ref().map(|_| ()).map_err(|reason| *reason);
            self.known.insert(word, frame.ok());
            result?;
        }
        let Some(Some((number, len))) = self.known.get(&word).copied() else {
            return Err("its record is damaged");
        };
        let end = start.saturating_add(len.saturating_mul(INSTRUCTION)).min(limit);
        let before = self.functions.ranges.last().map_or(0, |function| function.end);
        if start < before || start >= end {
            return Ok(());
        }
        self.functions.ranges.push(RuntimeFunction { start, end, frame: number });
        let functions = &self.functions;
        let Some(frame) = functions.frames.get(number as usize) else { return Ok(()) };
        self.builder.begin(start);
        let mut row = |instruction: u32| {
            let address = start.saturating_add(instruction.saturating_mul(INSTRUCTION));
            if address < end {
                self.builder.row(address, rule(functions.operations_at(frame, instruction)));
            }
        };
        (0..=frame.prologue).for_each(&mut row);
        let last = (end - start) / INSTRUCTION;
        for epilogue in functions.epilogues_of(frame).iter().take_while(|epilogue| epilogue.start < last) {
            // Rows of an epilogue begin after the prologue.
            (epilogue.start.max(frame.prologue)..=epilogue.start + epilogue.len).for_each(&mut row);
        }
        self.builder.end(end);
        Ok(())
    }

    /// Reads a frame, and returns its number and the number of its function's instructions.
    fn frame(&mut self, word: u32) -> Result<(u32, u32), &'static str> {
        let record = XdataRecord::read(&mut self.image, word, &mut self.budget)?;
        let Arm64Functions { frames, operations, epilogues, .. } = &mut self.functions;
        let (first, number) = (operations.len() as u32, frames.len() as u32);
        let first_epilogue = epilogues.len() as u32;
        operations.extend(record.operations);
        epilogues.extend(record.epilogues);
        frames.push(FunctionFrame {
            operations: first..operations.len() as u32,
            prologue: record.prologue,
            epilogues: first_epilogue..epilogues.len() as u32,
        });
        Ok((number, record.len))
    }
}
