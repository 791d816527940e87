//! Stacks of other events: the class `StackWalk` (MOF `StackWalk_Event`, `StackWalk_Key` and
//! `StackWalk_TypeGroup1`).
//!
//! The kernel part and the user part of a stack are separate events. The user part is walked when the thread
//! returns to user code, so that other events come before it.

use crate::fields::{Addresses, EventFields};
use crate::{Event, PayloadError};

pub(super) const STACK: u8 = 32;
pub(super) const KEY_CREATE: u8 = 34;
pub(super) const KEY_DELETE: u8 = 35;
pub(super) const KEY_RUNDOWN: u8 = 36;
pub(super) const KEY_KERNEL: u8 = 37;
pub(super) const KEY_USER: u8 = 38;

/// A stack, or its kernel or user part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    /// The time of the event whose stack it is, in units of the trace's clock.
    pub event_time: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Innermost first.
    pub addresses: Addresses<'a>,
}

/// A stack that another event has, by its number. Sessions that compact stacks write these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackKey {
    /// The time of the event whose stack it is, in units of the trace's clock.
    pub event_time: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The number.
    pub key: u64,
    /// Whether it is the user part.
    pub is_user: bool,
}

/// The stack that has a number, until another one has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedStack<'a> {
    /// The number.
    pub key: u64,
    /// Innermost first.
    pub addresses: Addresses<'a>,
    /// Whether the number ends here: an event that names it later means another stack.
    pub ends: bool,
}

pub(super) fn stack<'a>(event: &Event<'a>) -> Result<Stack<'a>, PayloadError> {
    let mut fields = EventFields::of(event, "StackWalk Stack");
    let event_time = fields.u64("time")?;
    let process = fields.u32("process")?;
    let thread = fields.u32("thread")?;
    Ok(Stack { event_time, process, thread, addresses: fields.addresses() })
}

pub(super) fn key(event: &Event<'_>) -> Result<StackKey, PayloadError> {
    let mut fields = EventFields::of(event, "StackWalk Key");
    let event_time = fields.u64("time")?;
    let process = fields.u32("process")?;
    let thread = fields.u32("thread")?;
    let key = fields.pointer("key")?;
    Ok(StackKey { event_time, process, thread, key, is_user: event.opcode == KEY_USER })
}

pub(super) fn keyed<'a>(event: &Event<'a>) -> Result<KeyedStack<'a>, PayloadError> {
    let mut fields = EventFields::of(event, "StackWalk KeyRundown");
    let key = fields.pointer("key")?;
    let ends = event.opcode == KEY_DELETE;
    Ok(KeyedStack { key, addresses: fields.addresses(), ends })
}
