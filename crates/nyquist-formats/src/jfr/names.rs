//! Frames, stacks and threads of a chunk of a JFR recording, each resolved once, because constants refer to
//! long ones repeatedly.

use std::rc::Rc;

use nyquist_profile::{FrameId, StackId, ThreadIndex};
use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use super::values::JfrValue;
use crate::import::{CodePosition, Importer, ThreadName};

/// The maximum length of names of classes and methods, which is not reached in practice. Longer names are
/// truncated.
const MAX_NAME: usize = 4096;

/// The name of the thread of events whose thread is not in the chunk.
const UNKNOWN_THREAD: &str = "(unknown thread)";

/// The recorded process, according to the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedProcess {
    pub(super) pid: String,
    pub(super) name: String,
}

/// The resolved constants of a chunk.
pub(super) struct ChunkNames<'c, 'a> {
    chunk: &'c Chunk<'a>,
    process: &'c RecordedProcess,
    texts: FxHashMap<(u64, u64), Rc<str>>,
    methods: FxHashMap<(u64, u64), Rc<str>>,
    stacks: FxHashMap<u64, Option<StackId>>,
    threads: FxHashMap<u64, ThreadIndex>,
    /// How many more bytes names may have, so that short constants do not make unbounded long names.
    bytes_left: &'c mut usize,
}

impl<'c, 'a> ChunkNames<'c, 'a> {
    pub(super) fn new(chunk: &'c Chunk<'a>, process: &'c RecordedProcess, bytes_left: &'c mut usize) -> Self {
        Self {
            chunk,
            process,
            texts: FxHashMap::default(),
            methods: FxHashMap::default(),
            stacks: FxHashMap::default(),
            threads: FxHashMap::default(),
            bytes_left,
        }
    }

    /// The value of a constant's field.
    fn field<'v>(&self, value: &'v JfrValue<'a>, name: &str) -> &'v JfrValue<'a> {
        let JfrValue::Struct(class, fields) = value else { return &JfrValue::Missing };
        let place = self.chunk.metadata.field(*class, name).map(|(place, _)| place);
        place.and_then(|place| fields.get(place)).unwrap_or(&JfrValue::Missing)
    }

    /// A text: a direct one, that of a constant, or that of a constant that contains one text (a symbol, a
    /// frame's type) or a name (a class).
    pub(super) fn text(&mut self, value: &JfrValue<'a>) -> Rc<str> {
        self.text_within(value, 0)
    }

    fn text_within(&mut self, value: &JfrValue<'a>, depth: usize) -> Rc<str> {
        match value {
            JfrValue::Text(text) => cut(text).into(),
            _ if depth > 4 => "".into(),
            &JfrValue::Constant(class, key) => {
                if let Some(known) = self.texts.get(&(class, key)) {
                    return Rc::clone(known);
                }
                let constant = self.chunk.constant(class, key).unwrap_or(JfrValue::Missing);
                let text = self.text_within(&constant, depth + 1);
                self.texts.insert((class, key), Rc::clone(&text));
                text
            }
            JfrValue::Struct(..) => {
                let names = ["name", "string", "description"];
                let found =
                    names.iter().map(|name| self.field(value, name)).find(|it| **it != JfrValue::Missing);
                found.map_or_else(|| "".into(), |found| self.text_within(found, depth + 1))
            }
            _ => "".into(),
        }
    }

    /// A class's name in Java's notation, with dots.
    pub(super) fn class(&mut self, value: &JfrValue<'a>) -> String {
        self.text(value).replace('/', ".")
    }

    /// The stack that an event refers to.
    pub(super) fn stack(&mut self, importer: &mut Importer, value: &JfrValue<'a>) -> Option<StackId> {
        let &JfrValue::Constant(class, key) = value else { return None };
        if let Some(&stack) = self.stacks.get(&key) {
            return stack;
        }
        let trace = self.chunk.constant(class, key).unwrap_or(JfrValue::Missing);
        let mut stack = None;
        if *self.field(&trace, "truncated") == JfrValue::Integer(1) {
            let truncated = importer.frame(&CodePosition { name: "(truncated)", ..CodePosition::default() });
            stack = Some(importer.stack(None, truncated));
        }
        if let JfrValue::Array(frames) = self.field(&trace, "frames") {
            // The innermost frame comes first.
            for frame in frames.iter().rev() {
                let frame = self.frame(importer, frame);
                stack = Some(importer.stack(stack, frame));
            }
        }
        self.stacks.insert(key, stack);
        stack
    }

    fn frame(&mut self, importer: &mut Importer, frame: &JfrValue<'a>) -> FrameId {
        let name = self.method(self.field(frame, "method"));
        let line = self.field(frame, "lineNumber").unsigned();
        let kind = self.text(self.field(frame, "type"));
        importer.frame(&CodePosition {
            name: &name,
            line: line.and_then(|line| u32::try_from(line).ok()),
            is_kernel: &*kind == "Kernel",
            is_jit: matches!(&*kind, "JIT compiled" | "Inlined" | "C1 compiled"),
            ..CodePosition::default()
        })
    }

    /// `package.Class.method`; functions of native code have no class.
    fn method(&mut self, value: &JfrValue<'a>) -> Rc<str> {
        let &JfrValue::Constant(class, key) = value else { return "".into() };
        if let Some(known) = self.methods.get(&(class, key)) {
            return Rc::clone(known);
        }
        let method = self.chunk.constant(class, key).unwrap_or(JfrValue::Missing);
        let owner = self.class(self.field(&method, "type"));
        let name = self.text(self.field(&method, "name"));
        let full: Rc<str> = match (owner.is_empty(), name.is_empty()) {
            (true, _) => name,
            (false, true) => owner.into(),
            (false, false) => format!("{owner}.{name}").into(),
        };
        let full = match self.bytes_left.checked_sub(full.len()) {
            Some(left) => {
                *self.bytes_left = left;
                full
            }
            None => "".into(),
        };
        self.methods.insert((class, key), Rc::clone(&full));
        full
    }

    /// The thread that an event refers to. The JVM may leave out a thread that ends while the chunk is
    /// written: its events are those of [`UNKNOWN_THREAD`].
    pub(super) fn thread(&mut self, importer: &mut Importer, value: &JfrValue<'a>) -> ThreadIndex {
        let &JfrValue::Constant(class, key) = value else { return self.unknown_thread(importer) };
        if let Some(&thread) = self.threads.get(&key) {
            return thread;
        }
        let thread = match self.chunk.constant(class, key) {
            Some(constant) => self.add_thread(importer, &constant),
            None => self.unknown_thread(importer),
        };
        self.threads.insert(key, thread);
        thread
    }

    fn unknown_thread(&self, importer: &mut Importer) -> ThreadIndex {
        let RecordedProcess { pid, name: process } = self.process;
        importer.thread(ThreadName { pid, process, tid: "0", thread: UNKNOWN_THREAD })
    }

    fn add_thread(&mut self, importer: &mut Importer, thread: &JfrValue<'a>) -> ThreadIndex {
        let id = |name| self.field(thread, name).unsigned().filter(|&id| id > 0);
        // A virtual thread has no system thread.
        let tid = match (id("osThreadId"), id("javaThreadId")) {
            (Some(id), _) => id.to_string(),
            (None, Some(id)) => format!("java {id}"),
            (None, None) => "0".to_owned(),
        };
        let java_name = self.text(self.field(thread, "javaName"));
        let name = if java_name.is_empty() { self.text(self.field(thread, "osName")) } else { java_name };
        let RecordedProcess { pid, name: process } = self.process;
        importer.thread(ThreadName { pid, process, tid: &tid, thread: &name })
    }
}

/// The first bytes of a text, up to a character boundary.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME)]
}
