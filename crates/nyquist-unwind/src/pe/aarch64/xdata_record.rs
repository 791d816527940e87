//! The description of a function: its length, its codes, and where its epilogues are (".xdata records",
//! "Packed unwind data").

use super::codes::{Operation, UnusableReason, decode};
use super::packed_unwind_data::PackedUnwindData;
use crate::pe::image::PeImage;
use nyquist_object::ByteSource;

const OUTSIDE: UnusableReason = "its unwind information is not in the image";

/// An epilogue, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epilogue {
    /// How far into the function it begins.
    pub(super) start: u32,
    /// How many instructions it has.
    pub(super) len: u32,
    /// The index of its first operation.
    pub(super) operation: u32,
}

/// The description of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XdataRecord {
    /// How many instructions it has.
    pub(super) len: u32,
    /// The prologue's operations, the last one first, up to an end, and then those of epilogues.
    pub(super) operations: Vec<Operation>,
    /// How many instructions its prologue has. A part of a function without its own prologue has 0, because
    /// the prologue has already run.
    pub(super) prologue: u32,
    /// By address; none overlap.
    pub(super) epilogues: Vec<Epilogue>,
}

impl XdataRecord {
    /// Reads the description that is in the second word of a table entry, or that the word refers to. The
    /// cost is subtracted from `budget`, because overlapping records could cost any amount.
    pub(super) fn read<S: ByteSource>(
        image: &mut PeImage<'_, S>,
        word: u32,
        budget: &mut u32,
    ) -> Result<Self, UnusableReason> {
        if word & 3 != 0 {
            let record = Self::packed(PackedUnwindData::new(word)?)?;
            spend(budget, record.operations.len() as u32)?;
            return Ok(record);
        }
        Self::full(image, word, budget)
    }

    fn packed(packed: PackedUnwindData) -> Result<Self, UnusableReason> {
        let mut record = Self { len: packed.len, operations: packed.prologue()?, ..Self::default() };
        if packed.has_prologue {
            record.prologue = instructions(&record.operations);
            let epilogue = packed.epilogue()?;
            let operation = record.operations.len() as u32;
            record.operations.extend(epilogue);
            record.add_last_epilogue(operation);
        }
        Ok(record)
    }

    fn full<S: ByteSource>(
        image: &mut PeImage<'_, S>,
        address: u32,
        budget: &mut u32,
    ) -> Result<Self, UnusableReason> {
        let header = image.u32(address).ok_or(OUTSIDE)?;
        let field = |low: u32, bits: u32| header >> low & ((1 << bits) - 1);
        if field(18, 2) != 0 {
            return Err("its unwind information is of an unknown version");
        }
        let mut at = address.checked_add(4).ok_or(OUTSIDE)?;
        let (mut count, mut words) = (field(22, 5), field(27, 5));
        if (count, words) == (0, 0) {
            let extension = image.u32(at).ok_or(OUTSIDE)?;
            (count, words) = (extension & 0xffff, extension >> 16 & 0xff);
            at = at.checked_add(4).ok_or(OUTSIDE)?;
        }
        let has_one_epilogue = field(21, 1) != 0;
        let scopes = if has_one_epilogue { 0 } else { count };
        spend(budget, 4 * (scopes + words))?;
        let scopes: Vec<u32> = words_of(image.get(at, 4 * scopes).ok_or(OUTSIDE)?);
        at = at.checked_add(4 * scopes.len() as u32).ok_or(OUTSIDE)?;
        let codes = decode(image.get(at, 4 * words).ok_or(OUTSIDE)?)?;
        let (places, operations): (Vec<usize>, Vec<Operation>) = codes.into_iter().unzip();
        let mut record =
            Self { len: field(0, 18), prologue: instructions(&operations), operations, ..Self::default() };
        let number = |index: u32| {
            places.binary_search(&(index as usize)).ok().ok_or("an epilogue begins within a code")
        };
        if has_one_epilogue {
            record.add_last_epilogue(number(count)? as u32);
            return Ok(record);
        }
        for scope in scopes {
            record.add_epilogue(scope & 0x3_ffff, number(scope >> 22)? as u32);
        }
        Ok(record)
    }

    /// Adds the epilogue that ends with the function.
    fn add_last_epilogue(&mut self, operation: u32) {
        let len = self.epilogue_len(operation);
        self.add_epilogue(self.len.saturating_sub(len), operation);
    }

    /// Adds an epilogue, unless it begins before the end of the last one.
    fn add_epilogue(&mut self, start: u32, operation: u32) {
        let len = self.epilogue_len(operation).min(self.len.saturating_sub(start));
        if self.epilogues.last().is_none_or(|last| last.start + last.len <= start) {
            self.epilogues.push(Epilogue { start, len, operation });
        }
    }

    /// How many instructions an epilogue has: those that have a code, and the one that leaves the function.
    fn epilogue_len(&self, operation: u32) -> u32 {
        instructions(self.operations.get(operation as usize..).unwrap_or_default()) + 1
    }
}

fn spend(budget: &mut u32, cost: u32) -> Result<(), UnusableReason> {
    *budget = budget.checked_sub(cost).ok_or("there are more codes than the file has room for")?;
    Ok(())
}

/// The number of instructions up to the end.
fn instructions(operations: &[Operation]) -> u32 {
    let own = operations.iter().take_while(|operation| !operation.is_end());
    own.filter(|operation| operation.is_instruction()).count() as u32
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
