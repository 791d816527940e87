//! Reads samples, markers, and the values of counters.

use crate::fields::Fields;
use crate::marker_rows::{Known, read_marker};
use crate::recovered::RecoveredTables;
use crate::sample_rows::Before;
use nyquist_profile::{CounterId, CounterSample, ThreadIndex};

impl RecoveredTables {
    pub(crate) fn read_samples(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (thread, mut index) = self.thread(fields)?;
        let mut before = Before::default();
        while !fields.is_empty() {
            let sample = before.read(fields, &self.stacks)?;
            let written = &mut self.rows[thread].0;
            if index >= *written {
                *written = index.checked_add(1)?;
                self.builder.add_sample(ThreadIndex::from_index(thread), sample);
            }
            index += 1;
        }
        Some(())
    }

    pub(crate) fn read_markers(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (thread, mut index) = self.thread(fields)?;
        while !fields.is_empty() {
            let known = Known {
                strings: &self.strings,
                stacks: &self.stacks,
                categories: &self.categories,
                schemas: &self.schemas,
            };
            let marker = read_marker(fields, known)?;
            let written = &mut self.rows[thread].1;
            if index >= *written {
                *written = index.checked_add(1)?;
                self.builder.add_marker(ThreadIndex::from_index(thread), marker);
            }
            index += 1;
        }
        Some(())
    }

    /// The index of a thread, and that of its first row in the record.
    fn thread(&self, fields: &mut Fields<'_>) -> Option<(usize, usize)> {
        let thread: usize = fields.small().filter(|thread| *thread < self.rows.len())?;
        Some((thread, fields.small()?))
    }

    pub(crate) fn read_counter_samples(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let counter: usize = fields.small().filter(|counter| *counter < self.counters.len())?;
        let mut index: usize = fields.small()?;
        while !fields.is_empty() {
            let (time, delta) = (fields.number()?, fields.float()?);
            let operations = fields.option()?.map(u32::try_from).transpose().ok()?;
            let written = &mut self.counters[counter].0;
            if index >= *written {
                *written = index.checked_add(1)?;
                let samples = &mut self.builder.counter_mut(CounterId::from_index(counter)).samples;
                samples.push(CounterSample { time, delta, operations });
            }
            index = index.checked_add(1)?;
        }
        Some(())
    }
}
