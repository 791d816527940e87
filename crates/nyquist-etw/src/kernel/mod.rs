//! The events of the Windows kernel that a profile is made of.

mod change;
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
pub use change::ObjectChange;
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

/// Reads an event, if it is one of those that a profile is made of.
///
/// # Errors
/// The payload ends before its fields do.
pub fn decode<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    match event.provider {
        classes::PERF_INFO => of_perf_info(event),
        classes::STACK_WALK => of_stack_walk(event),
        classes::THREAD => of_thread(event),
        classes::PROCESS => Ok(process::decode(event)?.map(KernelEvent::Process)),
        classes::IMAGE => Ok(image::decode(event)?.map(KernelEvent::Image)),
        classes::IMAGE_ID => of_image_id(event),
        classes::SYSTEM_CONFIG_EX => Ok(volume::decode(event).map(KernelEvent::Volume)),
        classes::EVENT_TRACE => Ok(header::decode(event)?.map(KernelEvent::Header)),
        _ => Ok(None),
    }
}

fn of_perf_info<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    use perf_info::{COLLECTION_END, COLLECTION_START, SAMPLED_PROFILE, SET_INTERVAL};
    Ok(match event.opcode {
        SAMPLED_PROFILE => Some(KernelEvent::Sample(perf_info::sample(event)?)),
        SET_INTERVAL | COLLECTION_START | COLLECTION_END => {
            perf_info::interval(event)?.map(KernelEvent::Interval)
        }
        _ => None,
    })
}

fn of_stack_walk<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    use stack_walk::{KEY_CREATE, KEY_DELETE, KEY_KERNEL, KEY_RUNDOWN, KEY_USER, STACK};
    Ok(match event.opcode {
        STACK => Some(KernelEvent::Stack(stack_walk::stack(event)?)),
        KEY_KERNEL | KEY_USER => Some(KernelEvent::StackKey(stack_walk::key(event)?)),
        KEY_CREATE | KEY_DELETE | KEY_RUNDOWN => Some(KernelEvent::KeyedStack(stack_walk::keyed(event)?)),
        _ => None,
    })
}

fn of_thread<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    use thread::{CONTEXT_SWITCH, READY_THREAD, SET_NAME};
    Ok(match event.opcode {
        CONTEXT_SWITCH => Some(KernelEvent::ContextSwitch(thread::switch(event)?)),
        READY_THREAD => Some(KernelEvent::ReadyThread(thread::ready(event)?)),
        SET_NAME => Some(KernelEvent::ThreadName(thread::set_name(event)?)),
        _ => thread::change(event)?.map(KernelEvent::Thread),
    })
}

fn of_image_id<'a>(event: &Event<'a>) -> Result<Option<KernelEvent<'a>>, PayloadError> {
    Ok(match event.opcode {
        image::IMAGE_ID => Some(KernelEvent::ImageId(image::image_id(event)?)),
        image::DEBUG_ID => Some(KernelEvent::PdbId(image::pdb_id(event)?)),
        _ => None,
    })
}
