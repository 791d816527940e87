//! The state of one sequence that packets refer to: names, frames, stacks and defaults. It is valid until the
//! sequence clears it.

use std::rc::Rc;

use nyquist_profile::{FrameId, LibId, StackId};
use rustc_hash::FxHashMap;

use super::message::{Callstack, Defaults, Frame, InternedData, InternedString, Mapping, Timebase};
use super::stack_sample_message::StackSample;
use super::stack_samples::StackSampleState;
use super::texts::{MAX_NAME, text};
use crate::import::{CodePosition, Importer};

/// The most frames of a stack that is in its sample.
const MAX_INLINE_FRAMES: usize = 4096;

type Texts = FxHashMap<u64, Rc<str>>;

/// The state of a sequence.
#[derive(Default)]
pub(super) struct Sequence {
    pub(super) categories: Texts,
    pub(super) event_names: Texts,
    pub(super) annotation_names: Texts,
    pub(super) annotation_values: Texts,
    build_ids: FxHashMap<u64, Vec<u8>>,
    mapping_paths: Texts,
    source_paths: Texts,
    function_names: Texts,
    mappings: FxHashMap<u64, Mapping>,
    frames: FxHashMap<u64, Frame>,
    callstacks: FxHashMap<u64, Callstack>,
    known_libs: FxHashMap<u64, (Option<LibId>, bool)>,
    known_frames: FxHashMap<u64, FrameId>,
    known_stacks: FxHashMap<u64, Option<StackId>>,
    pub(super) clock: u32,
    pub(super) track: u64,
    pub(super) timebase: Option<Timebase>,
    pub(super) stack_samples: StackSampleState,
    /// The thread of packets that do not state one: its process and id.
    pub(super) thread: Option<(i64, i64)>,
    /// The time of the last event with a relative time, in ns.
    pub(super) time: i64,
}

fn add_texts(table: &mut Texts, texts: Vec<InternedString>) {
    for InternedString { id, text: bytes } in texts {
        table.entry(id).or_insert_with(|| text(&bytes));
    }
}

impl Sequence {
    pub(super) fn intern(&mut self, interned: InternedData) {
        add_texts(&mut self.categories, interned.categories);
        add_texts(&mut self.event_names, interned.event_names);
        add_texts(&mut self.annotation_names, interned.annotation_names);
        add_texts(&mut self.annotation_values, interned.annotation_values);
        add_texts(&mut self.mapping_paths, interned.mapping_paths);
        add_texts(&mut self.source_paths, interned.source_paths);
        add_texts(&mut self.function_names, interned.function_names);
        self.build_ids.extend(interned.build_ids.into_iter().map(|it| (it.id, it.text)));
        self.mappings.extend(interned.mappings.into_iter().map(|it| (it.id, it)));
        self.frames.extend(interned.frames.into_iter().map(|it| (it.id, it)));
        self.callstacks.extend(interned.callstacks.into_iter().map(|it| (it.id, it)));
        self.stack_samples.intern(interned.tasks, interned.counters);
    }

    pub(super) fn set_defaults(&mut self, defaults: Defaults) {
        self.clock = defaults.clock;
        self.track = defaults.event.map_or(0, |event| event.track);
        self.timebase = defaults.sample.and_then(|sample| sample.timebase);
        self.stack_samples.set_defaults(defaults.stack_sample);
    }

    /// The stack with this number.
    ///
    /// `bytes_left` is how many more bytes paths of libs may have, so that short mappings do not make
    /// unbounded long paths.
    pub(super) fn stack(
        &mut self,
        importer: &mut Importer,
        id: u64,
        bytes_left: &mut usize,
    ) -> Option<StackId> {
        if let Some(&stack) = self.known_stacks.get(&id) {
            return stack;
        }
        let frames = self.callstacks.get(&id).map_or_else(Vec::new, |it| it.frames.clone());
        let mut stack = None;
        for frame in frames {
            let frame = self.frame(importer, frame, bytes_left);
            stack = Some(importer.stack(stack, frame));
        }
        self.known_stacks.insert(id, stack);
        stack
    }

    /// The stack of a sample: the one in it, or an interned one.
    pub(super) fn sample_stack(
        &mut self,
        importer: &mut Importer,
        sample: &StackSample,
        bytes_left: &mut usize,
    ) -> Option<StackId> {
        let Some(inline) = &sample.callstack else {
            return self.stack(importer, sample.callstack_id, bytes_left);
        };
        let mut stack = None;
        for frame in inline.frames.iter().take(MAX_INLINE_FRAMES) {
            let (name, file) = (text(&frame.function), text(&frame.file));
            let (name, file, line) = (&*name, Some(&*file), Some(frame.line));
            let frame = importer.frame(&CodePosition { name, file, line, ..CodePosition::default() });
            stack = Some(importer.stack(stack, frame));
        }
        stack
    }

    fn frame(&mut self, importer: &mut Importer, id: u64, bytes_left: &mut usize) -> FrameId {
        if let Some(&frame) = self.known_frames.get(&id) {
            return frame;
        }
        let frame = self.frames.get(&id).copied().unwrap_or_default();
        let (lib, is_kernel) = self.lib(importer, frame.mapping, bytes_left);
        let address = frame.address.and_then(|address| u32::try_from(address).ok());
        let address = address.filter(|&address| address > 0);
        let name = self.function_names.get(&frame.function_name).map_or("", |name| name);
        if name.is_empty() && lib.is_some() && address.is_some() {
            // The mapped files may have the name.
            importer.meta_mut().symbolicated = false;
        }
        let file = self.source_paths.get(&frame.source_path).map(|file| &**file);
        let line = Some(frame.line);
        let frame = importer.frame(&CodePosition {
            name,
            lib,
            file,
            line,
            address,
            is_kernel,
            ..CodePosition::default()
        });
        self.known_frames.insert(id, frame);
        frame
    }

    /// The lib of a mapping, and whether it is the kernel.
    fn lib(&mut self, importer: &mut Importer, id: u64, bytes_left: &mut usize) -> (Option<LibId>, bool) {
        if let Some(&known) = self.known_libs.get(&id) {
            return known;
        }
        let known = match self.mappings.get(&id) {
            Some(mapping) => {
                let parts = mapping.path.iter().filter_map(|part| self.mapping_paths.get(part));
                let path = join(parts.map(|part| &**part));
                let build_id = self.build_ids.get(&mapping.build_id).map(|id| build_id(id));
                let is_paid = bytes_left.checked_sub(path.len()).map(|left| *bytes_left = left).is_some();
                let lib = (is_paid && !path.is_empty()).then(|| importer.lib(&path, build_id.as_deref()));
                (lib, path.contains("[kernel"))
            }
            None => (None, false),
        };
        self.known_libs.insert(id, known);
        known
    }
}

/// Joins the parts of a path, up to the maximum length.
fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut path = String::new();
    for (place, part) in parts.enumerate() {
        if place > 0 && !path.ends_with('/') && !part.starts_with('/') {
            path.push('/');
        }
        path.push_str(part);
        if path.len() > MAX_NAME {
            break;
        }
    }
    path
}

/// A build id in hex digits. Some tools already write it so.
fn build_id(id: &[u8]) -> String {
    if id.len() >= 16 && id.iter().all(u8::is_ascii_hexdigit) {
        return String::from_utf8_lossy(id).to_ascii_lowercase();
    }
    id.iter().take(64).fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}
