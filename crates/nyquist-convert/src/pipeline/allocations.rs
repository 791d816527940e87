//! Allocations and frees: they are summed up by stack, and become markers at the end.

use super::Pipeline;
use crate::account::heap::NamedStack;
use crate::event::{Allocation, Counter, CounterGraph, CounterKind, Free, GraphColor, Timestamp};
use nyquist_profile::StackId;
use std::sync::{Arc, LazyLock};

/// The counter of what a process has allocated and not freed. Beside its memory, it shows what is not from its
/// allocator, and what the allocator keeps.
static LIVE_BYTES: LazyLock<Arc<CounterKind>> = LazyLock::new(|| {
    Arc::new(CounterKind {
        name: "Allocated".to_owned(),
        unit: "bytes".to_owned(),
        category: "Memory".to_owned(),
        description: "Bytes allocated and not freed".to_owned(),
        graph: CounterGraph::Accumulated,
        color: GraphColor::Orange,
        order: 1,
        accompanies: false,
    })
});

impl Pipeline {
    /// A block was allocated.
    pub(super) fn allocation(&mut self, now: Timestamp, cpu: Option<u32>, mut allocation: Allocation) {
        let is_known = self.processes.replace_released_tid(&mut allocation.sample, cpu);
        let id = (allocation.sample.pid, allocation.sample.tid);
        if is_known && self.is_kept(id.0, now) && self.selects(id, cpu, now) && !self.sink.is_left_out(id) {
            let stack = self.stack_of(now, &allocation);
            let row = self.sink.thread_row(now, id, &mut self.processes);
            if let Some(bytes) = self.heaps.allocate(now, &allocation, (row, stack)) {
                let kind = Arc::clone(&LIVE_BYTES);
                let counter = Counter { pid: id.0, kind, value: bytes.max(0) as f64 };
                self.sink.count(now, &counter, &mut self.processes);
            }
        }
    }

    /// The stack of an allocation, which is walked unless an earlier one had the same.
    fn stack_of(&mut self, now: Timestamp, allocation: &Allocation) -> Option<StackId> {
        if let NamedStack::Known(known) = self.heaps.named_stack(allocation) {
            return known;
        }
        let sample = &allocation.sample;
        let truncated = self.walker.walk_from_caller((sample, now), &mut self.processes);
        self.place_frames(now, sample, truncated);
        let stack = self.sink.intern_stack(sample.tid, &self.processes);
        self.heaps.note_stack(allocation, stack);
        stack
    }

    /// A block was freed.
    pub(super) fn free(&mut self, now: Timestamp, free: &Free) {
        // Most frees of a heap whose blocks are not selected are unknown.
        self.heaps.free(now, free);
    }

    /// Adds the allocations to the profile.
    pub(super) fn show_allocations(&mut self) {
        let groups = self.heaps.finish();
        self.sink.add_allocations(&groups);
    }
}
