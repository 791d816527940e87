//! Writes the table of native allocations of a process: what was allocated, and what of it was freed when.
//!
//! The front end shows from it what was allocated, what was freed, and what was retained in a range of time. It finds
//! the allocation of a free in the same table, so each process has one, in its first thread.

use std::io::Write;

use super::json::JsonWriter;
use super::subset::Subset;
use crate::allocations::{AllocatedGroup, AllocationMeasure};
use crate::id::StackId;
use crate::profile::Profile;
use crate::thread::Thread;

/// Blocks that were allocated, or that were freed.
struct AllocationRow {
    time: u64,
    /// Negative if they were freed.
    bytes: i64,
    /// Where they were allocated. Where they were freed is not known.
    stack: Option<StackId>,
    /// A number for the blocks, in the place of an address.
    blocks: u64,
    thread: u64,
}

/// Writes the table into the first thread of a process with allocations.
pub(super) fn write_native_allocations<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    thread: &Thread,
) {
    if profile.allocation_measures().is_empty() || !is_first(profile, thread) {
        return;
    }
    let rows = rows(profile, thread);
    if rows.is_empty() {
        return;
    }
    json.key("nativeAllocations").object(|json| {
        json.column("time", &rows, |json, row| json.milliseconds(row.time));
        json.column("weight", &rows, |json, row| json.signed(row.bytes));
        json.key("weightType").string("bytes");
        json.column("stack", &rows, |json, row| json.optional(row.stack.map(|stack| subset.stack(stack))));
        json.column("memoryAddress", &rows, |json, row| json.integer(row.blocks));
        json.column("threadId", &rows, |json, row| json.integer(row.thread));
        json.key("length").integer(rows.len() as u64);
    });
}

/// The threads whose stacks are written with a thread: those of its process, where it has the table of all.
pub(super) fn with_its_process<'a>(profile: &'a Profile, thread: &'a Thread) -> Vec<&'a Thread> {
    let has_table = !profile.allocation_measures().is_empty() && is_first(profile, thread);
    if has_table { threads_of_process(profile, thread).collect() } else { vec![thread] }
}

fn threads_of_process<'a>(profile: &'a Profile, thread: &Thread) -> impl Iterator<Item = &'a Thread> {
    let process = thread.process;
    profile.threads().iter().filter(move |other| other.process == process)
}

fn is_first(profile: &Profile, thread: &Thread) -> bool {
    threads_of_process(profile, thread).next().is_some_and(|first| std::ptr::eq(first, thread))
}

/// The rows of the process of a thread, by time.
fn rows(profile: &Profile, thread: &Thread) -> Vec<AllocationRow> {
    let mut rows = Vec::new();
    let mut blocks = 0;
    for (thread, number) in threads_of_process(profile, thread).zip(1..) {
        let tid = thread.tid.parse().unwrap_or(number);
        for group in profile.allocated_by(thread) {
            add_rows(&mut rows, &group, tid, &mut blocks);
        }
    }
    // An allocation is before the free of the same blocks, also where both have one time.
    rows.sort_by_key(|row| row.time);
    rows
}

/// Adds the rows of a group: those of its blocks that stayed, and those of the others.
fn add_rows(rows: &mut Vec<AllocationRow>, group: &AllocatedGroup, thread: u64, blocks: &mut u64) {
    let live = group.amount(AllocationMeasure::Live).round() as i64;
    let freed = group.amount(AllocationMeasure::Total).round() as i64 - live;
    for (bytes, end) in [(live, None), (freed, Some(group.end.unwrap_or(group.start)))] {
        if bytes <= 0 {
            continue;
        }
        *blocks += 1;
        let row = |time, bytes, stack| AllocationRow { time, bytes, stack, blocks: *blocks, thread };
        rows.push(row(group.start, bytes, group.stack));
        rows.extend(end.map(|end| row(end, -bytes, None)));
    }
}
