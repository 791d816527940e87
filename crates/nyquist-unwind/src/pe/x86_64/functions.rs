//! The table of functions, `.pdata`, and the rows of their prologues and epilogues.

use super::epilogue::EpiloguePattern;
use super::frame::rule;
use super::info::{FrameRegister, Operation, UnwindCode, UnwindInfo};
use crate::Damage;
use crate::pe::compiled_function_table::{CompiledFunctionTable, extent, table_of_functions};
use crate::pe::image::PeImage;
use crate::rule::{CfaKind, Rule};
use crate::rule_table::TableBuilder;
use nyquist_object::{ByteSource, Pe};
use std::collections::HashMap;
use std::ops::Range;

/// A range of code that is described.
#[derive(Clone, Copy, Debug)]
struct RuntimeFunction {
    start: u32,
    end: u32,
    /// The number of its frame.
    frame: u32,
}

/// The steps that have to be undone to leave a function.
#[derive(Clone, Debug)]
struct FunctionFrame {
    /// Its range among all steps, the last one of the prologue first.
    steps: Range<u32>,
    register: Option<FrameRegister>,
    /// The rule outside of prologue and epilogues.
    body: Rule,
}

/// The functions of an image, kept for steps that need all registers.
#[derive(Debug, Default)]
pub(crate) struct X64Functions {
    /// By address; none overlap.
    ranges: Vec<RuntimeFunction>,
    frames: Vec<FunctionFrame>,
    steps: Vec<UnwindCode>,
}

/// How to undo the frame of one function at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct X64FrameUndo<'a> {
    /// The steps of the prologue, the last one first. Steps later than `offset` have not been done.
    steps: &'a [UnwindCode],
    /// The offset of the place in the function.
    offset: u32,
    pub(crate) register: Option<FrameRegister>,
}

impl<'a> X64FrameUndo<'a> {
    /// The operations to be undone, in order.
    pub(crate) fn operations(self) -> impl Iterator<Item = Operation> + Clone + 'a {
        let done = self.steps.iter().filter(move |step| u32::from(step.offset) <= self.offset);
        done.map(|step| step.operation)
    }
}

impl X64Functions {
    /// How to undo the frame at an address whose rule is `rule`. `None` if no described function is there.
    pub(crate) fn undo(&self, address: u32, rule: Rule) -> Option<X64FrameUndo<'_>> {
        let after = self.ranges.partition_point(|function| function.start <= address);
        let function = self.ranges.get(after.checked_sub(1)?)?;
        let frame = self.frames.get(function.frame as usize).filter(|_| address < function.end)?;
        let steps = self.steps.get(frame.steps.start as usize..frame.steps.end as usize)?;
        let offset = address - function.start;
        let in_prologue = steps.first().is_some_and(|step| u32::from(step.offset) > offset);
        let in_epilogue = !in_prologue && rule != frame.body && rule.kind() == CfaKind::StackPointer;
        let steps = if in_epilogue { popped_later(steps, rule) } else { steps };
        Some(X64FrameUndo { steps, offset, register: frame.register })
    }

    /// How many bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.ranges) + size_of_val(&*self.frames) + size_of_val(&*self.steps)
    }
}

/// In an epilogue, the pushes that still have to be undone: one for each word below the return address.
fn popped_later(steps: &[UnwindCode], rule: Rule) -> &[UnwindCode] {
    let words = usize::try_from(rule.operand() / 8 - 1).unwrap_or(0);
    &steps[steps.len().saturating_sub(words)..]
}

/// Compiles the table of functions of an image whose code is at the addresses `code`.
pub(crate) fn compile<S: ByteSource>(
    pe: &Pe<S>,
    code: &[Range<u32>],
    damage: &mut Damage,
) -> CompiledFunctionTable<X64Functions> {
    let entries = entries(pe, code, damage);
    let mut compiler = X64Compiler {
        image: PeImage::new(pe),
        functions: X64Functions::default(),
        known: HashMap::new(),
        builder: TableBuilder::new(4 * entries.len(), extent(code)),
        // Each step takes at least two bytes of the image. Frames that are chained to others repeat the steps
        // of these.
        budget: pe.source().len() as usize,
    };
    for entry in entries {
        if let Err(reason) = compiler.function(&entry) {
            damage.add(|| format!("the function at {:#x}: {reason}", entry.start));
        }
    }
    let covered = compiler.functions.ranges.iter().map(|function| function.start..function.end).collect();
    CompiledFunctionTable { table: compiler.builder.finish(), functions: compiler.functions, covered }
}

/// An entry of the table ("struct RUNTIME_FUNCTION").
#[derive(Clone, Copy, Debug)]
struct PdataEntry {
    start: u32,
    end: u32,
    info: u32,
}

/// The entries by address, without those that overlap a previous one.
fn entries<S: ByteSource>(pe: &Pe<S>, code: &[Range<u32>], damage: &mut Damage) -> Vec<PdataEntry> {
    let words = table_of_functions(pe, damage);
    let entries = words.as_chunks().0.iter().map(|&[start, end, info]| PdataEntry { start, end, info });
    let mut entries: Vec<_> = entries.filter_map(|entry| within(code, entry)).collect();
    entries.sort_by_key(|entry| entry.start);
    let mut end = 0;
    entries.retain(|entry| {
        let is_apart = entry.start >= end;
        end = end.max(entry.end);
        is_apart
    });
    entries
}

/// The entry, truncated to the code range in which it begins.
fn within(code: &[Range<u32>], entry: PdataEntry) -> Option<PdataEntry> {
    let section = code.iter().find(|section| section.contains(&entry.start))?;
    Some(PdataEntry { end: entry.end.min(section.end), ..entry }).filter(|entry| entry.start < entry.end)
}

struct X64Compiler<'a, S> {
    image: PeImage<'a, S>,
    functions: X64Functions,
    /// The frames that were read, by the address of their info.
    known: HashMap<u32, Option<(u32, Option<EpiloguePattern>)>>,
    builder: TableBuilder,
    /// How many more steps may be kept.
    budget: usize,
}

impl<S: ByteSource> X64Compiler<'_, S> {
    /// Adds a function and its rows. Code with an unusable info is treated as uncovered.
    fn function(&mut self, entry: &PdataEntry) -> Result<(), &'static str> {
        let info = self.info_address(entry.info).ok_or("its entry is not in the image")?;
        if !self.known.contains_key(&info) {
            let frame = self.frame(info);
            let result = frame.as_ref().map(|_| ()).map_err(|reason| *reason);
            self.known.insert(info, frame.ok());
            result?;
        }
        let Some(Some((frame, pattern))) = self.known.get(&info) else { return Err("its info is damaged") };
        // If a function's code cannot be read, no epilogues are found.
        let code = self.image.get(entry.start, entry.end - entry.start).unwrap_or_default();
        self.functions.ranges.push(RuntimeFunction { start: entry.start, end: entry.end, frame: *frame });
        let Some(retained) = self.functions.frames.get(*frame as usize) else { return Ok(()) };
        let steps = &self.functions.steps[retained.steps.start as usize..retained.steps.end as usize];
        self.builder.begin(entry.start);
        let prologue = prologue_rows(entry, retained, steps, &mut self.builder);
        if let Some(pattern) = pattern {
            epilogue_rows(entry, retained.body, pattern, code, prologue, &mut self.builder);
        }
        self.builder.end(entry.end);
        Ok(())
    }

    /// If the address of an entry's info is odd, the info is that of another entry, which is at this address
    /// minus one.
    fn info_address(&mut self, info: u32) -> Option<u32> {
        if info & 1 == 0 {
            Some(info)
        } else {
            self.image.u32((info - 1).checked_add(8)?).filter(|info| info & 1 == 0)
        }
    }

    fn frame(&mut self, address: u32) -> Result<(u32, Option<EpiloguePattern>), &'static str> {
        let info = UnwindInfo::read(&mut self.image, address)?;
        self.budget = self
            .budget
            .checked_sub(info.steps.len())
            .ok_or("there are more codes than the file has room for")?;
        let start = self.functions.steps.len() as u32;
        let number = self.functions.frames.len() as u32;
        let body = rule(info.frame_register, info.steps.iter().map(|step| step.operation));
        let pattern = EpiloguePattern::new(&info);
        self.functions.steps.extend(info.steps);
        let steps = start..self.functions.steps.len() as u32;
        self.functions.frames.push(FunctionFrame { steps, register: info.frame_register, body });
        Ok((number, pattern))
    }
}

/// Adds the rows from the function's start to the end of its prologue, and returns the length of the
/// prologue.
fn prologue_rows(
    entry: &PdataEntry,
    frame: &FunctionFrame,
    steps: &[UnwindCode],
    builder: &mut TableBuilder,
) -> usize {
    let mut offsets: Vec<u8> = steps.iter().map(|step| step.offset).collect();
    offsets.push(0);
    offsets.sort_unstable();
    offsets.dedup();
    for &offset in &offsets {
        let done = steps.iter().filter(|step| step.offset <= offset);
        let address = entry.start.saturating_add(offset.into());
        if address < entry.end {
            builder.row(address, rule(frame.register, done.map(|step| step.operation)));
        }
    }
    offsets.last().copied().unwrap_or_default().into()
}

fn epilogue_rows(
    entry: &PdataEntry,
    body: Rule,
    pattern: &EpiloguePattern,
    code: &[u8],
    prologue: usize,
    builder: &mut TableBuilder,
) {
    for epilogue in pattern.find(code, prologue) {
        for place in epilogue.places {
            builder.row(entry.start + place.offset as u32, pattern.rule(place.words));
        }
        let end = entry.start + epilogue.end as u32;
        if end < entry.end {
            builder.row(end, body);
        }
    }
}
