//! The events of the Windows kernel that a profile is made of.

pub mod classes;
mod header;
mod image;
mod perf_info;
mod process;
mod stack_walk;
mod thread;
mod volume;

pub use crate::fields::Addresses;
use crate::{Event, PayloadError};
pub use header::TraceHeader;
pub use image::{Image, ImageId, PdbId};
pub use perf_info::{ProfileInterval, SampledProfile};
pub use process::Process;
pub use stack_walk::{KeyedStack, Stack, StackKey};
pub use thread::{ContextSwitch, ReadyThread, Thread, ThreadName, ThreadState, WaitReason};
pub use volume::Volume;

/// An event of the kernel, or of the library that merges its traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent<'a> {
    /// What the trace says of itself.
    Header(TraceHeader),
    /// A CPU was sampled.
    Sample(SampledProfile),
    /// How often CPUs are sampled.
    Interval(ProfileInterval),
    /// The stack of an event before it, or half of that stack.
    Stack(Stack<'a>),
    /// The same, by its number.
    StackKey(StackKey),
    /// The stack that has a number. It may come after events that name the number.
    KeyedStack(KeyedStack<'a>),
    /// A process.
    Process(Process),
    /// A thread.
    Thread(Thread),
    /// A thread took a name.
    ThreadName(ThreadName),
    /// A CPU changed from one thread to another.
    ContextSwitch(ContextSwitch),
    /// A thread was made ready to run.
    ReadyThread(ReadyThread),
    /// A file that is mapped for its code.
    Image(Image),
    /// The identity of an image.
    ImageId(ImageId),
    /// The identity of an image's debug information.
    PdbId(PdbId),
    /// The drive letter of a volume.
    Volume(Volume),
}

/// What a process, a thread, or an image did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It began.
    Start,
    /// It ended.
    End,
    /// It was there when the trace began ("data collection start").
    ThereAtStart,
    /// It was there when the trace ended ("data collection end"). Traces that keep the newest events only, and
    /// some others, have these events alone.
    ThereAtEnd,
}

impl Change {
    /// By the opcode of the classes `Process`, `Thread` and, but for its start, `Image`.
    fn of(opcode: u8) -> Option<Self> {
        match opcode {
            1 => Some(Self::Start),
            2 => Some(Self::End),
            3 => Some(Self::ThereAtStart),
            4 => Some(Self::ThereAtEnd),
            _ => None,
        }
    }
}

/// Reads an event, if it is one of those that a profile is made of.
///
/// # Errors
/// The payload ends before its fields do.
pub fn decode<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    match event.provider {
        classes::PERF_INFO => perf_info::decode(event),
        classes::STACK_WALK => stack_walk::decode(event),
        classes::THREAD => thread::decode(event),
        classes::PROCESS => process::decode(event),
        classes::IMAGE => image::decode(event),
        classes::IMAGE_ID => image::decode_identity(event),
        classes::SYSTEM_CONFIG_EX => Ok(volume::decode(event)),
        classes::EVENT_TRACE => header::decode(event),
        _ => Ok(None),
    }
}
