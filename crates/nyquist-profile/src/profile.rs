//! A profile: all tables, immutable.

use std::iter;

use crate::category::Category;
use crate::code::{Frame, Func, Lib, NativeSymbol, Source, Stack};
use crate::counter::Counter;
use crate::id::{
    CategoryId, FrameId, FuncId, LibId, MarkerSchemaId, NativeSymbolId, ProcessIndex, SourceId, StackId,
    StringId, ThreadIndex,
};
use crate::marker::MarkerSchema;
use crate::meta::{ExtraInfo, Meta};
use crate::samples::Samples;
use crate::strings::StringTable;
use crate::thread::{Process, Thread};

/// A profile. Every id in it is a row of its own tables, and a stack's prefix comes before the stack. Each
/// thread's samples and markers are ordered by time. Each process with threads has one main thread. There
/// is a grey category.
///
/// Methods that take an id panic on the id of another profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub(crate) meta: Meta,
    pub(crate) strings: StringTable,
    pub(crate) libs: Vec<Lib>,
    pub(crate) sources: Vec<Source>,
    pub(crate) funcs: Vec<Func>,
    pub(crate) native_symbols: Vec<NativeSymbol>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) categories: Vec<Category>,
    pub(crate) marker_schemas: Vec<MarkerSchema>,
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) counters: Vec<Counter>,
}

/// Defines the two ways to read a table: as a slice and by id.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident, $row:ident, $id:ident, $type:ident;)*) => {$(
        $(#[$doc])*
        pub fn $table(&self) -> &[$type] {
            &self.$table
        }

        /// The row of that id.
        pub fn $row(&self, id: $id) -> &$type {
            &self.$table[id.index()]
        }
    )*};
}

impl Profile {
    tables! {
        /// The libs.
        libs, lib, LibId, Lib;
        /// The source files.
        sources, source, SourceId, Source;
        /// The functions.
        funcs, func, FuncId, Func;
        /// The symbol-table entries.
        native_symbols, native_symbol, NativeSymbolId, NativeSymbol;
        /// The frames.
        frames, frame, FrameId, Frame;
        /// The stacks; parents precede children.
        stacks, stack, StackId, Stack;
        /// The categories.
        categories, category, CategoryId, Category;
        /// The kinds of markers.
        marker_schemas, marker_schema, MarkerSchemaId, MarkerSchema;
        /// The processes.
        processes, process, ProcessIndex, Process;
        /// The threads.
        threads, thread, ThreadIndex, Thread;
    }

    /// Facts about the recording.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The duration of the recording, in ns. If its start or end is not known, the first or last sample is
    /// used instead. O(threads).
    pub fn duration(&self) -> u64 {
        let samples = || self.threads.iter().map(|thread| &thread.samples);
        let first = || samples().filter_map(|samples| Some(samples.first()?.time)).min();
        let last = || samples().filter_map(|samples| Some(samples.last()?.time)).max();
        let start = self.meta.profiling_start.or_else(first).unwrap_or(0);
        self.meta.profiling_end.or_else(last).unwrap_or(0).saturating_sub(start)
    }

    /// The same profile without the threads of CPUs, whose samples and markers repeat others. O(samples of
    /// CPUs).
    #[must_use]
    pub fn without_repetition_by_cpu(mut self) -> Self {
        for thread in &mut self.threads {
            if self.processes.get(thread.process.index()).is_some_and(Process::is_of_cpus) {
                thread.samples = Samples::default();
                thread.markers = Vec::new();
            }
        }
        self
    }

    /// The strings.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The string of that id.
    pub fn string(&self, id: StringId) -> &str {
        &self.strings[id]
    }

    /// Replaces the paths of source files for which `rename` returns one. Files with equal new paths stay
    /// separate rows. O(files).
    pub fn rename_sources(&mut self, rename: impl Fn(&str) -> Option<String>) {
        for source in &mut self.sources {
            if let Some(path) = rename(&self.strings[source.filename]) {
                source.filename = self.strings.intern(&path);
            }
        }
    }

    /// The counters.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The name of a function.
    pub fn func_name(&self, id: FuncId) -> &str {
        self.string(self.func(id).name)
    }

    /// The lib that a frame's address is relative to.
    pub fn frame_lib(&self, id: FrameId) -> Option<LibId> {
        self.func(self.frame(id).func).lib
    }

    /// Adds a line to the profile's information panel.
    pub fn add_info(&mut self, line: ExtraInfo) {
        self.meta.extra.push(line);
    }

    /// The file of a frame's line.
    pub fn frame_source(&self, frame: &Frame) -> Option<SourceId> {
        frame.source.or(self.func(frame.func).source)
    }

    /// The line of a frame. A frame without one, as of code that was generated while the program ran, has the
    /// line where its function begins, if that is in the same file.
    pub fn frame_line(&self, frame: &Frame) -> Option<u32> {
        let func = self.func(frame.func);
        frame.line.or_else(|| func.line.filter(|_| self.frame_source(frame) == func.source))
    }

    /// The nodes from `stack` to its root.
    pub fn ancestors(&self, stack: StackId) -> impl Iterator<Item = StackId> {
        iter::successors(Some(stack), |&stack| self.stack(stack).prefix)
    }

    /// The frames of a stack from the innermost to the outermost.
    pub fn stack_frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.ancestors(stack).map(|stack| self.frame(self.stack(stack).frame))
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::ProfileBuilder;
    use crate::code::{Frame, Func, Source};
    use crate::meta::Meta;

    #[test]
    fn a_frame_without_a_line_has_its_functions() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let [own, other] = ["app.js", "other.js"].map(|file| {
            let filename = builder.intern_string(file);
            Some(builder.intern_source(Source { filename }))
        });
        let name = builder.intern_string("run");
        let func = builder.intern_func(Func { source: own, line: Some(12), ..Func::new(name, None) });
        let profile = builder.finish();
        let line = |source, line| profile.frame_line(&Frame { source, line, ..Frame::label(func) });
        assert_eq!([line(None, None), line(own, None), line(own, Some(14))], [Some(12), Some(12), Some(14)]);
        // That line is in another file.
        assert_eq!(line(other, None), None);
    }
}
