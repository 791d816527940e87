//! Samples as fields: a byte of flags, and the differences from the sample before.

use crate::fields::{Fields, put_difference, put_number};
use nyquist_profile::{Sample, StackId};

const OFF_CPU: u8 = 1;
/// It has another weight than 1.
const HAS_WEIGHT: u8 = 2;
const HAS_STACK: u8 = 4;
/// Its stack is that of the sample before.
const SAME_STACK: u8 = 8;

/// The figures of the sample before, in the same record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    time: u64,
    cpu_delta: u64,
    /// The index of its stack.
    stack: Option<usize>,
}

impl Before {
    /// Adds a sample.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, sample: Sample) {
        let Sample { time, cpu_delta, stack, weight, off_cpu } = sample;
        let stack = stack.map(StackId::index);
        let is_same = stack == self.stack;
        let flags = [
            (off_cpu, OFF_CPU),
            (weight != 1, HAS_WEIGHT),
            (stack.is_some(), HAS_STACK),
            (is_same, SAME_STACK),
        ];
        out.push(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        put_difference(out, self.time, time);
        put_difference(out, self.cpu_delta, cpu_delta);
        if weight != 1 {
            put_number(out, weight);
        }
        if let Some(stack) = stack.filter(|_| !is_same) {
            put_difference(out, self.stack.unwrap_or(0) as u64, stack as u64);
        }
        *self = Self { time, cpu_delta, stack };
    }

    /// The next sample, of a profile with these stacks.
    pub(crate) fn read(&mut self, fields: &mut Fields<'_>, stacks: &[StackId]) -> Option<Sample> {
        let flags = fields.byte()?;
        let has = |flag| flags & flag != 0;
        let time = fields.after(self.time)?;
        let cpu_delta = fields.after(self.cpu_delta)?;
        let weight = if has(HAS_WEIGHT) { fields.number()? } else { 1 };
        let stack = if has(SAME_STACK) {
            self.stack
        } else if has(HAS_STACK) {
            Some(usize::try_from(fields.after(self.stack.unwrap_or(0) as u64)?).ok()?)
        } else {
            None
        };
        *self = Self { time, cpu_delta, stack };
        let stack = match stack {
            Some(index) => Some(*stacks.get(index)?),
            None => None,
        };
        Some(Sample { time, cpu_delta, stack, weight, off_cpu: has(OFF_CPU) })
    }
}
