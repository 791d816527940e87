//! Processes and threads as fields. Their names and ends change, so a row is written again when it has changed.

use crate::batch::Batch;
use crate::fields::{Fields, put_bytes, put_number, put_option};
use crate::kind::Kind;
use nyquist_profile::{Process, ProcessIndex, Profile, Thread};
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

/// What was written of the rows of processes or threads: a hash of each.
#[derive(Debug, Default)]
pub(crate) struct WrittenRows(Vec<u64>);

impl WrittenRows {
    /// Adds the rows that are new to a batch, and those that have changed if all are looked at.
    fn add_changed<Row>(
        &mut self,
        (batch, kind): (&mut Batch, Kind),
        (rows, all): (&[Row], bool),
        put: impl Fn(&mut Vec<u8>, &Row),
    ) {
        let mut fields = Vec::new();
        let mut changed = Vec::new();
        let known = if all { 0 } else { self.0.len() };
        for (index, row) in rows.iter().enumerate().skip(known) {
            fields.clear();
            put(&mut fields, row);
            let mut hasher = FxHasher::default();
            hasher.write(&fields);
            let hash = hasher.finish();
            match self.0.get_mut(index) {
                Some(written) if *written == hash => continue,
                Some(written) => *written = hash,
                None => self.0.push(hash),
            }
            changed.push((index, row));
        }
        let add = |out: &mut Vec<u8>, (index, row): (usize, &Row), _| {
            put_number(out, index as u64);
            put(out, row);
        };
        batch.add_rows(kind, changed, |_, _| {}, add);
    }
}

/// Adds the processes and threads that are new or have changed to a batch.
pub(crate) fn add_row_names(
    (processes, threads): (&mut WrittenRows, &mut WrittenRows),
    (named, all): (&Profile, bool),
    batch: &mut Batch,
) {
    processes.add_changed((batch, Kind::Processes), (named.processes(), all), put_process);
    threads.add_changed((batch, Kind::Threads), (named.threads(), all), put_thread);
}

fn put_process(out: &mut Vec<u8>, process: &Process) {
    put_bytes(out, process.pid.as_bytes());
    put_bytes(out, process.name.as_bytes());
    put_number(out, process.start);
    put_option(out, process.end);
}

fn put_thread(out: &mut Vec<u8>, thread: &Thread) {
    put_number(out, thread.process.index() as u64);
    put_bytes(out, thread.tid.as_bytes());
    put_bytes(out, thread.name.as_bytes());
    put_number(out, thread.start);
    put_option(out, thread.end);
    out.push(thread.is_main.into());
}

/// The index of a process, and its row.
pub(crate) fn read_process(fields: &mut Fields<'_>) -> Option<(usize, Process)> {
    let index = fields.small()?;
    let (pid, name) = (fields.owned()?, fields.owned()?);
    let (start, end) = (fields.number()?, fields.option()?);
    Some((index, Process { pid, name, start, end }))
}

/// The index of a thread, and its row without samples.
pub(crate) fn read_thread(fields: &mut Fields<'_>, processes: usize) -> Option<(usize, Thread)> {
    let index = fields.small()?;
    let process: usize = fields.small().filter(|process| *process < processes)?;
    let (tid, name) = (fields.owned()?, fields.owned()?);
    let (start, end, is_main) = (fields.number()?, fields.option()?, fields.flag()?);
    let row = Thread::new(ProcessIndex::from_index(process), tid, name);
    Some((index, Thread { start, end, is_main, ..row }))
}
