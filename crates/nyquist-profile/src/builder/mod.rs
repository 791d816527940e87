//! Builds profiles: interns repeated rows, and appends others.

mod finish;

use std::collections::hash_map::Entry;
use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::category::{Category, CategoryColor};
use crate::code::{Frame, Func, Lib, NativeSymbol, Source, Stack};
use crate::counter::Counter;
use crate::id::{
    CategoryId, CounterId, FrameId, FuncId, LibId, MarkerSchemaId, NativeSymbolId, ProcessIndex, SourceId,
    StackId, StringId, ThreadIndex,
};
use crate::marker::{Marker, MarkerSchema, MarkerValue};
use crate::meta::Meta;
use crate::profile::Profile;
use crate::row_index::{RowIndex, hash_of};
use crate::sample::Sample;
use crate::stack_index::StackIndex;
use crate::thread::{Process, Thread};
use crate::well_known;

/// Builds a [`Profile`]. All ids given to it must be its own; methods that look one up panic otherwise.
///
/// For a profile of the data so far, call [`finish`](Self::finish) on a clone.
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    profile: Profile,
    interned: InternedIds,
    /// The number of processes with each pid so far.
    pids: FxHashMap<String, u32>,
    /// The categories of a file whose subcategories did not begin with `Other`.
    categories_without_other: FxHashSet<usize>,
}

/// The ids of the existing rows.
#[derive(Clone, Debug, Default)]
struct InternedIds {
    /// Libs by debug name and breakpad id, which identify their symbols, or by all fields if one of these is
    /// missing.
    libs: FxHashMap<Lib, LibId>,
    sources: RowIndex,
    funcs: RowIndex,
    native_symbols: RowIndex,
    frames: RowIndex,
    stacks: StackIndex,
}

/// The code tables of a profile that is being rebuilt, as returned by [`ProfileBuilder::rebuild`].
#[derive(Clone, Debug, Default)]
pub struct CodeTables {
    /// The functions.
    pub funcs: Vec<Func>,
    /// The symbol-table entries.
    pub native_symbols: Vec<NativeSymbol>,
    /// The frames.
    pub frames: Vec<Frame>,
    /// The stacks; parents precede children.
    pub stacks: Vec<Stack>,
}

/// Defines the method that interns a row of a table. O(1).
macro_rules! intern {
    ($($(#[$doc:meta])* $method:ident, $table:ident, $type:ident, $id:ident;)*) => {$(
        $(#[$doc])*
        pub fn $method(&mut self, row: $type) -> $id {
            intern(&mut self.interned.$table, &mut self.profile.$table, row, $id::from_index)
        }
    )*};
}

/// Defines the method that appends a row to a table without a search. O(1).
macro_rules! append {
    ($($(#[$doc:meta])* $method:ident, $table:ident, $type:ident, $id:ident;)*) => {$(
        $(#[$doc])*
        pub fn $method(&mut self, row: $type) -> $id {
            let table = &mut self.profile.$table;
            table.push(row);
            $id::from_index(table.len() - 1)
        }
    )*};
}

impl ProfileBuilder {
    /// A builder of a profile with one category, the grey `Other`.
    pub fn new(meta: Meta) -> Self {
        let mut builder = Self::without_categories(meta);
        builder.add_category(well_known::OTHER, CategoryColor::Grey);
        builder
    }

    /// A builder of a profile without categories; [`finish`](Self::finish) adds the grey one if it is
    /// missing.
    pub(crate) fn without_categories(meta: Meta) -> Self {
        let profile = Profile { meta, ..Profile::default() };
        Self {
            profile,
            interned: InternedIds::default(),
            pids: FxHashMap::default(),
            categories_without_other: FxHashSet::default(),
        }
    }

    /// Takes a profile apart to give it other code tables, as symbolication does.
    ///
    /// The builder keeps everything except functions, native symbols, frames and stacks, which are
    /// returned separately. Samples and markers still refer to the old stacks until
    /// [`remap_stacks`](Self::remap_stacks) replaces them. This must happen before anything else is
    /// sampled or finished.
    pub fn rebuild(mut profile: Profile) -> (Self, CodeTables) {
        let code = CodeTables {
            funcs: std::mem::take(&mut profile.funcs),
            native_symbols: std::mem::take(&mut profile.native_symbols),
            frames: std::mem::take(&mut profile.frames),
            stacks: std::mem::take(&mut profile.stacks),
        };
        let interned = InternedIds {
            libs: (0..)
                .map(LibId::from_index)
                .zip(&profile.libs)
                .map(|(id, lib)| (lib_key(lib), id))
                .collect(),
            sources: index_of(&profile.sources),
            ..InternedIds::default()
        };
        let pids = profile.processes.iter().map(|process| (process.pid.clone(), 1)).collect();
        (Self { profile, interned, pids, categories_without_other: FxHashSet::default() }, code)
    }

    /// Replaces the stack of every sample and marker that has one by the stack that `map` returns.
    pub fn remap_stacks(&mut self, map: impl Fn(StackId) -> Option<StackId>) {
        for thread in &mut self.profile.threads {
            thread.samples.remap_stacks(&map);
            for marker in &mut thread.markers {
                marker.stack = marker.stack.and_then(&map);
            }
        }
    }

    /// Gives a stack another innermost frame, for its samples, markers and callees alike. From then on
    /// [`intern_stack`](Self::intern_stack) finds it by neither of the two frames. O(1).
    pub fn replace_frame(&mut self, stack: StackId, frame: FrameId) {
        self.profile.stacks[stack.index()].frame = frame;
    }

    /// The tables so far. Samples may be unordered, and main threads undetermined.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The facts about the recording, for changes.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.profile.meta
    }

    /// The id of a string. O(length).
    pub fn intern_string(&mut self, string: &str) -> StringId {
        self.profile.strings.intern(string)
    }

    intern! {
        /// The id of a source file. O(1).
        intern_source, sources, Source, SourceId;
        /// The id of a function. O(1).
        intern_func, funcs, Func, FuncId;
        /// The id of a symbol-table entry. O(1).
        intern_native_symbol, native_symbols, NativeSymbol, NativeSymbolId;
        /// The id of a frame. O(1).
        intern_frame, frames, Frame, FrameId;
    }

    append! {
        /// Adds a function that is known to differ from all others. It is not searched, and
        /// [`intern_func`](Self::intern_func) will not find it. O(1).
        append_func, funcs, Func, FuncId;
        /// Adds a frame that is known to differ from all others. It is not searched, and
        /// [`intern_frame`](Self::intern_frame) will not find it. O(1).
        append_frame, frames, Frame, FrameId;
        /// Adds a stack that is known to differ from all others. It is not searched, and
        /// [`intern_stack`](Self::intern_stack) will not find it. Its prefix must exist. O(1).
        append_stack, stacks, Stack, StackId;
    }

    /// Adds a string that is known to differ from all others. It is not searched, and
    /// [`intern_string`](Self::intern_string) will not find it. O(length).
    pub fn append_string(&mut self, string: &str) -> StringId {
        self.profile.strings.append(string)
    }

    /// The id of the stack with `frame` on top of `prefix`. O(1).
    pub fn intern_stack(&mut self, prefix: Option<StackId>, frame: FrameId) -> StackId {
        self.interned.stacks.intern(&mut self.profile.stacks, Stack { prefix, frame })
    }

    /// The id of a stack of one frame that is only a name, such as `(truncated)`. O(1).
    pub fn intern_label(
        &mut self,
        prefix: Option<StackId>,
        name: &str,
        category: Option<CategoryId>,
    ) -> StackId {
        let frame = self.intern_label_frame(name, category);
        self.intern_stack(prefix, frame)
    }

    /// The id of a frame that is only a name. O(1).
    pub fn intern_label_frame(&mut self, name: &str, category: Option<CategoryId>) -> FrameId {
        let name = self.intern_string(name);
        let func = self.intern_func(Func::new(name, None));
        self.intern_frame(Frame { category: category.map(Into::into), ..Frame::label(func) })
    }

    /// Adds a lib, or finds the one with the same debug name and breakpad id, because these two identify it
    /// in the front end.
    pub fn add_lib(&mut self, mut lib: Lib) -> LibId {
        if lib.debug_name.contains('/') {
            lib.debug_name = lib.debug_name.replace('/', "_");
        }
        match self.interned.libs.entry(lib_key(&lib)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.profile.libs.push(lib);
                *entry.insert(LibId::from_index(self.profile.libs.len() - 1))
            }
        }
    }

    /// Changes the path of a lib's debug info.
    pub fn set_debug_path(&mut self, lib: LibId, path: impl Into<String>) {
        self.profile.libs[lib.index()].debug_path = path.into();
    }

    /// Adds a category, or finds the one of that name.
    pub fn add_category(&mut self, name: &str, color: CategoryColor) -> CategoryId {
        let categories = &mut self.profile.categories;
        let index = categories.iter().position(|category| category.name == name).unwrap_or_else(|| {
            categories.push(Category {
                name: name.into(),
                color,
                subcategories: vec![well_known::OTHER.into()],
            });
            categories.len() - 1
        });
        CategoryId::from_index(index)
    }

    /// Adds a category from a file, even if one of that name exists, because frames refer to categories by
    /// index. The first subcategory is always `Other`: it is put before those of a file that lacks it.
    pub(crate) fn push_category(&mut self, name: &str, color: CategoryColor, subcategories: &[String]) {
        let mut subcategories = subcategories.to_vec();
        let has_other = subcategories.first().is_some_and(|first| first == well_known::OTHER);
        if !has_other {
            if !subcategories.is_empty() {
                self.categories_without_other.insert(self.profile.categories.len());
            }
            subcategories.insert(0, well_known::OTHER.into());
        }
        self.profile.categories.push(Category { name: name.into(), color, subcategories });
    }

    /// The subcategory that a file calls by a number, of a category that the file has. `None` if it has none of that
    /// number.
    pub(crate) fn subcategory_of_file(&self, category: CategoryId, number: usize) -> Option<u16> {
        let is_behind_other = self.categories_without_other.contains(&category.index());
        let index = number.checked_add(usize::from(is_behind_other))?;
        let count = self.profile.categories.get(category.index())?.subcategories.len();
        (index < count).then(|| u16::try_from(index).unwrap_or(0))
    }

    /// Adds a subcategory, or finds the one of that name.
    pub fn add_subcategory(&mut self, category: CategoryId, name: &str) -> u16 {
        let names = &mut self.profile.categories[category.index()].subcategories;
        let index = names.iter().position(|existing| existing == name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        u16::try_from(index).unwrap_or(0)
    }

    /// Adds a kind of marker, or finds the one of that name.
    pub fn add_marker_schema(&mut self, schema: MarkerSchema) -> MarkerSchemaId {
        let schemas = &mut self.profile.marker_schemas;
        let index = schemas.iter().position(|existing| existing.name == schema.name).unwrap_or_else(|| {
            schemas.push(schema);
            schemas.len() - 1
        });
        MarkerSchemaId::from_index(index)
    }

    /// Adds a process. If its pid was used before, it becomes `77.1`, `77.2`, ...
    pub fn add_process(&mut self, mut process: Process) -> ProcessIndex {
        process.pid = self.unused_pid(&process.pid);
        self.profile.processes.push(process);
        ProcessIndex::from_index(self.profile.processes.len() - 1)
    }

    fn unused_pid(&mut self, pid: &str) -> String {
        let mut candidate = pid.to_owned();
        while self.pids.contains_key(&candidate) {
            let uses = self.pids.entry(pid.to_owned()).or_default();
            candidate = format!("{pid}.{uses}");
            *uses += 1;
        }
        self.pids.insert(candidate.clone(), 1);
        candidate
    }

    /// A process, for changes. A changed pid must stay distinct.
    pub fn process_mut(&mut self, process: ProcessIndex) -> &mut Process {
        &mut self.profile.processes[process.index()]
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, thread: Thread) -> ThreadIndex {
        self.profile.threads.push(thread);
        ThreadIndex::from_index(self.profile.threads.len() - 1)
    }

    /// A thread, for changes.
    pub fn thread_mut(&mut self, thread: ThreadIndex) -> &mut Thread {
        &mut self.profile.threads[thread.index()]
    }

    /// Adds a sample to a thread. O(1).
    pub fn add_sample(&mut self, thread: ThreadIndex, sample: Sample) {
        self.thread_mut(thread).samples.push(sample);
    }

    /// Frees memory reserved for more samples of a thread, if few more are expected. O(samples) at worst.
    pub fn end_samples(&mut self, thread: ThreadIndex) {
        self.thread_mut(thread).samples.shrink_to_fit();
    }

    /// Adds a marker to a thread. Its values are extended or cut to the number of its schema's fields. O(1).
    pub fn add_marker(&mut self, thread: ThreadIndex, mut marker: Marker) {
        let fields = marker.schema.map_or(0, |schema| self.profile.marker_schema(schema).fields.len());
        marker.values.resize(fields, MarkerValue::Missing);
        self.thread_mut(thread).markers.push(marker);
    }

    /// Adds a counter.
    pub fn add_counter(&mut self, counter: Counter) -> CounterId {
        self.profile.counters.push(counter);
        CounterId::from_index(self.profile.counters.len() - 1)
    }

    /// A counter, for changes.
    pub fn counter_mut(&mut self, counter: CounterId) -> &mut Counter {
        &mut self.profile.counters[counter.index()]
    }
}

/// The id of `row`, which is appended to `table` if it is new.
fn intern<Row: Copy + Eq + Hash, Id>(
    index: &mut RowIndex,
    table: &mut Vec<Row>,
    row: Row,
    id: impl Fn(usize) -> Id,
) -> Id {
    let new = table.len();
    let place = index.find_or_add(hash_of(&row), new, |place| table[place] == row);
    if place == new {
        table.push(row);
    }
    id(place)
}

/// The index of a table's distinct rows.
fn index_of<Row: Eq + Hash>(table: &[Row]) -> RowIndex {
    let mut index = RowIndex::default();
    for (place, row) in table.iter().enumerate() {
        index.find_or_add(hash_of(row), place, |known| table[known] == *row);
    }
    index
}

/// The identity of a lib: its debug name and breakpad id if it has both, otherwise everything.
fn lib_key(lib: &Lib) -> Lib {
    if lib.debug_name.is_empty() || lib.breakpad_id.is_empty() {
        return lib.clone();
    }
    Lib { debug_name: lib.debug_name.clone(), breakpad_id: lib.breakpad_id.clone(), ..Lib::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> ProfileBuilder {
        ProfileBuilder::new(Meta::default())
    }

    fn lib(debug_name: &str, breakpad_id: &str, path: &str) -> Lib {
        Lib {
            path: path.into(),
            debug_name: debug_name.into(),
            breakpad_id: breakpad_id.into(),
            ..Lib::default()
        }
    }

    #[test]
    fn equal_rows_share_an_id() {
        let mut builder = builder();
        let main = builder.intern_label(None, "main", None);
        let work = builder.intern_label(Some(main), "work", None);
        assert_eq!(builder.intern_label(None, "main", None), main);
        assert_eq!(builder.intern_label(Some(main), "work", None), work);
        assert_ne!(builder.intern_label(None, "work", None), work);
        let profile = builder.finish();
        assert_eq!((profile.funcs().len(), profile.frames().len(), profile.stacks().len()), (2, 2, 3));
        assert_eq!(profile.ancestors(work).collect::<Vec<_>>(), [work, main]);
    }

    #[test]
    fn rows_that_are_appended_are_not_searched_for() {
        let mut builder = builder();
        let func = |name| Func::new(name, None);
        let name = builder.append_string("0x7f");
        let appended = builder.append_func(func(name));
        let frame = builder.append_frame(Frame::label(appended));
        let stack = builder.append_stack(Stack { prefix: None, frame });
        let child = builder.intern_stack(Some(stack), frame);
        assert_eq!(builder.intern_stack(Some(stack), frame), child);
        assert_ne!(builder.intern_string("0x7f"), name);
        assert_ne!(builder.intern_func(func(name)), appended);
        assert_ne!(builder.intern_frame(Frame::label(appended)), frame);
        assert_ne!(builder.intern_stack(None, frame), stack);
        assert_eq!(builder.profile().func_name(appended), "0x7f");
    }

    #[test]
    fn libs_that_the_front_end_would_mix_up_are_one() {
        let mut builder = builder();
        let first = builder.add_lib(lib("a.so", "AA0", "/one/a.so"));
        assert_eq!(builder.add_lib(lib("a.so", "AA0", "/two/a.so")), first);
        assert_ne!(builder.add_lib(lib("a.so", "BB0", "/one/a.so")), first);
    }

    #[test]
    fn libs_without_id_are_distinguished_by_path() {
        let mut builder = builder();
        let first = builder.add_lib(lib("a.so", "", "/one/a.so"));
        assert_ne!(builder.add_lib(lib("a.so", "", "/two/a.so")), first);
        assert_eq!(builder.add_lib(lib("a.so", "", "/one/a.so")), first);
    }

    #[test]
    fn a_debug_name_has_no_slash() {
        let mut builder = builder();
        let id = builder.add_lib(lib("/usr/lib/a.so", "AA0", "/usr/lib/a.so"));
        assert_eq!(builder.finish().lib(id).debug_name, "_usr_lib_a.so");
    }

    #[test]
    fn a_pid_that_is_used_again_is_made_distinct() {
        let mut builder = builder();
        for pid in ["7", "7.1", "7", "7"] {
            builder.add_process(Process { pid: pid.into(), ..Process::default() });
        }
        let profile = builder.finish();
        let pids: Vec<_> = profile.processes().iter().map(|process| process.pid.as_str()).collect();
        assert_eq!(pids, ["7", "7.1", "7.2", "7.3"]);
    }

    #[test]
    fn a_marker_has_as_many_values_as_schema_fields() {
        let mut builder = builder();
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", ""));
        let field = |key: &str| crate::MarkerField {
            key: key.into(),
            label: None,
            format: crate::MarkerFormat::Integer,
        };
        let schema = builder.add_marker_schema(MarkerSchema {
            fields: vec![field("a"), field("b")],
            ..MarkerSchema::default()
        });
        let name = builder.intern_string("m");
        let category = CategoryId::from_index(0);
        let timing = crate::MarkerTiming::Instant(1);
        let values = vec![MarkerValue::Integer(1)];
        builder
            .add_marker(thread, Marker { name, timing, category, schema: Some(schema), values, stack: None });
        assert_eq!(
            builder.finish().thread(thread).markers[0].values,
            [MarkerValue::Integer(1), MarkerValue::Missing]
        );
    }

    #[test]
    fn rebuilding_gives_samples_their_new_stacks() {
        let mut old = builder();
        let process = old.add_process(Process::default());
        let thread = old.add_thread(Thread::new(process, "1", ""));
        let (retained, dropped) = (old.intern_label(None, "0x1", None), old.intern_label(None, "0x2", None));
        old.add_sample(thread, Sample::new(1, Some(retained), 0));
        old.add_sample(thread, Sample::new(2, Some(dropped), 0));

        let (mut builder, code) = ProfileBuilder::rebuild(old.finish());
        assert_eq!(code.stacks.len(), 2);
        let outer = builder.intern_label(None, "outer", None);
        let inner = builder.intern_label(Some(outer), "inner", None);
        builder.remap_stacks(|stack| (stack == retained).then_some(inner));
        let profile = builder.finish();
        let samples = &profile.thread(thread).samples;
        assert_eq!((samples.get(0).unwrap().stack, samples.get(1).unwrap().stack), (Some(inner), None));
        let names: Vec<_> = profile.stack_frames(inner).map(|frame| profile.func_name(frame.func)).collect();
        assert_eq!(names, ["inner", "outer"]);
    }
}
