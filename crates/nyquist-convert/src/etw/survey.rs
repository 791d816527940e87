//! A first look at a whole trace. Traces state what was there before them, the identities of images, the letters
//! of volumes and the stacks behind numbers at any place, often at their end.

use super::clr_code::{ClrCode, ClrMethods};
use super::images::Images;
use super::keyed_stacks::KeyedStacks;
use crate::modules::provided_symbols::ProvidedSymbols;
use nyquist_etw::kernel::{Image, KernelEvent, ObjectChange, Process, ProfileInterval, Thread, decode};
use nyquist_etw::{Event, PointerSize};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most processes, threads and images that were there before a trace.
const MAX_OBJECTS: usize = 1 << 22;

/// What a whole trace states.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) images: Images,
    pub(super) keyed: KeyedStacks,
    /// What was there when the trace began.
    pub(super) processes: Vec<Process>,
    pub(super) threads: Vec<Thread>,
    pub(super) mapped: Vec<(Image, PointerSize)>,
    /// All images, in which methods of .NET may be.
    all_images: Vec<Image>,
    methods: ClrMethods,
    /// The memory with methods of .NET, after the survey.
    pub(super) clr: ClrCode,
    pub(super) interval: Option<ProfileInterval>,
    /// The time of the first event that says something, in units of the trace's clock.
    pub(super) first_event: Option<u64>,
    /// The time of the first sample.
    pub(super) first_sample: Option<u64>,
    /// Whether it says which threads its CPUs ran.
    pub(super) has_switches: bool,
    seen_processes: FxHashSet<u32>,
    seen_threads: FxHashSet<u32>,
    seen_images: FxHashSet<(u32, u64)>,
}

impl Survey {
    /// Takes note of an event.
    pub fn note(&mut self, event: &Event<'_>) {
        if let Ok(Some(method)) = nyquist_etw::clr::method(event) {
            self.methods.add(method);
            return;
        }
        let Ok(Some(decoded)) = decode(event) else { return };
        if !matches!(decoded, KernelEvent::Header(_)) {
            self.first_event = Some(self.first_event.map_or(event.time, |at| at.min(event.time)));
        }
        match decoded {
            KernelEvent::Sample(sample) if sample.thread != super::tasks::IDLE => {
                self.first_sample = Some(self.first_sample.map_or(event.time, |at| at.min(event.time)));
            }
            KernelEvent::Interval(interval) => {
                self.interval.get_or_insert(interval);
            }
            KernelEvent::ContextSwitch(_) => self.has_switches = true,
            KernelEvent::KeyedStack(stack) => self.keyed.add(event.time, &stack),
            // A stack names the process of its thread, which no other event may do.
            KernelEvent::Stack(stack) => self.thread(Thread {
                change: ObjectChange::ThereAtStart,
                pid: stack.process,
                tid: stack.thread,
                name: String::new(),
            }),
            KernelEvent::Process(process) => self.process(process),
            KernelEvent::Thread(thread) => self.thread(thread),
            KernelEvent::Image(image) => self.image(image, event.pointer_size),
            KernelEvent::ImageId(id) => self.images.add_id(&id),
            KernelEvent::PdbId(id) => self.images.add_pdb(&id),
            KernelEvent::Volume(volume) => self.images.volumes.add(volume),
            _ => {}
        }
    }

    /// Ends the survey. Returns the functions that the trace states, by the paths of their files.
    pub(super) fn finish(&mut self) -> FxHashMap<String, ProvidedSymbols> {
        self.clr = std::mem::take(&mut self.methods).place(&self.all_images, &self.images);
        self.all_images = Vec::new();
        std::mem::take(&mut self.clr.symbols)
    }

    fn process(&mut self, process: Process) {
        let is_new = self.seen_processes.insert(process.pid);
        if is_new && process.change != ObjectChange::Start && self.processes.len() < MAX_OBJECTS {
            self.processes.push(process);
        }
    }

    fn thread(&mut self, thread: Thread) {
        let is_new = self.seen_threads.insert(thread.tid);
        if is_new && thread.change != ObjectChange::Start && self.threads.len() < MAX_OBJECTS {
            self.threads.push(thread);
        }
    }

    fn image(&mut self, image: Image, pointer_size: PointerSize) {
        self.images.volumes.note_image(&image.path);
        let is_new = self.seen_images.insert((image.pid, image.base));
        if is_new && self.all_images.len() < MAX_OBJECTS {
            self.all_images.push(image.clone());
        }
        if is_new && image.change != ObjectChange::Start && self.mapped.len() < MAX_OBJECTS {
            self.mapped.push((image, pointer_size));
        }
    }
}
