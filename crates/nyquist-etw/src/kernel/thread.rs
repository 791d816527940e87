//! Threads, and which of them run: the class `Thread` (MOF `Thread_TypeGroup1` of the versions 0 to 4,
//! `ThreadSetName`, `CSwitch`, `ReadyThread`).

use super::change::ObjectChange;
use crate::{Event, PayloadError, fields::EventFields};

pub(super) const CONTEXT_SWITCH: u8 = 36;
pub(super) const READY_THREAD: u8 = 50;
pub(super) const SET_NAME: u8 = 72;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// What it did.
    pub change: ObjectChange,
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name; empty if it has none, or if the event is too old to have it.
    pub name: String,
}

/// A thread took a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The name.
    pub name: String,
}

/// A CPU changed from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSwitch {
    /// The thread that runs from now on; 0 if the CPU is idle.
    pub new_thread: u32,
    /// The thread that ran; 0 if the CPU was idle.
    pub old_thread: u32,
    /// Why the thread that ran waits, if it does.
    pub old_wait_reason: WaitReason,
    /// Its state.
    pub old_state: ThreadState,
}

/// Why a thread waits: a `KWAIT_REASON`, whose numbers the documentation of `CSwitch` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitReason(pub u8);

/// The state of a thread, whose numbers the documentation of `CSwitch` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState(pub u8);

impl ThreadState {
    /// Whether the thread could have run on: it is ready, or chosen to run next.
    pub fn can_run(self) -> bool {
        matches!(self.0, 1 | 2 | 3 | 7)
    }

    /// Whether the thread has ended.
    pub fn is_terminated(self) -> bool {
        self.0 == 4
    }
}

/// A thread was made ready to run, by the thread that ran on the CPU, or by an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyThread {
    /// The thread that can run from now on.
    pub thread: u32,
    /// Whether a deferred procedure call has made it ready. Then the running thread is not the cause.
    pub in_deferred_call: bool,
}

/// What a thread did, of the events that say nothing else.
pub(super) fn change(event: &Event<'_>) -> Result<Option<Thread>, PayloadError> {
    ObjectChange::of(event.opcode).map(|change| thread(change, event)).transpose()
}

fn thread(change: ObjectChange, event: &Event<'_>) -> Result<Thread, PayloadError> {
    let mut fields = EventFields::of(event, "Thread");
    let (first, second) = (fields.u32("process")?, fields.u32("thread")?);
    // Version 0 has them the other way round.
    let (pid, tid) = if event.version == 0 { (second, first) } else { (first, second) };
    let name = if event.version >= 3 { name(fields) } else { String::new() };
    Ok(Thread { change, pid, tid, name })
}

/// The name at the end of a thread's event. Only some systems with version 3 have it.
fn name(mut fields: EventFields<'_>) -> String {
    // The stacks, the affinity, the start address, the environment block; then the service and priorities.
    let skipped = fields.skip_pointers(7, "addresses").and_then(|()| fields.skip(8, "priorities"));
    skipped.map_or_else(|_| String::new(), |()| fields.utf16())
}

pub(super) fn set_name(event: &Event<'_>) -> Result<ThreadName, PayloadError> {
    let mut fields = EventFields::of(event, "Thread SetName");
    let pid = fields.u32("process")?;
    let tid = fields.u32("thread")?;
    Ok(ThreadName { pid, tid, name: fields.utf16() })
}

pub(super) fn switch(event: &Event<'_>) -> Result<ContextSwitch, PayloadError> {
    let mut fields = EventFields::of(event, "Thread CSwitch");
    let new_thread = fields.u32("new thread")?;
    let old_thread = fields.u32("old thread")?;
    fields.skip(4, "priorities")?;
    let old_wait_reason = WaitReason(fields.u8("wait reason")?);
    fields.skip(1, "wait mode")?;
    let old_state = ThreadState(fields.u8("state")?);
    Ok(ContextSwitch { new_thread, old_thread, old_wait_reason, old_state })
}

pub(super) fn ready(event: &Event<'_>) -> Result<ReadyThread, PayloadError> {
    let mut fields = EventFields::of(event, "Thread ReadyThread");
    let thread = fields.u32("thread")?;
    fields.skip(2, "adjustment")?;
    let in_deferred_call = fields.u8("flags")? & 1 != 0;
    Ok(ReadyThread { thread, in_deferred_call })
}
