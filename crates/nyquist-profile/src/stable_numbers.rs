//! Indexes of functions and threads that stay the same from one profile of a recording to the next, for
//! views of a growing recording.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::code::Func;
use crate::id::{FuncId, LibId, ProcessIndex};
use crate::profile::Profile;
use crate::thread::Thread;

/// The keys of the functions and threads of the profiles so far, and their indexes. It only grows.
#[derive(Debug, Default)]
pub struct StableNumbers {
    funcs: KeyIndexes<FuncKey>,
    threads: KeyIndexes<ThreadKey>,
}

/// The key of a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FuncKey {
    name: Box<str>,
    lib: Option<LibId>,
    source: Option<Box<str>>,
}

/// The key of a thread.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ThreadKey {
    pid: Box<str>,
    tid: Box<str>,
}

/// Indexes by key. Several rows with the same key are distinguished by their order.
#[derive(Debug)]
struct KeyIndexes<K> {
    by_key: FxHashMap<Arc<K>, KeyNumbers>,
    /// By index.
    keys: Vec<Arc<K>>,
    /// The number of profiles so far.
    profiles: u64,
}

/// The rows of one key.
#[derive(Debug, Default)]
struct KeyNumbers {
    numbers: Vec<usize>,
    /// The last profile with rows of this key, and the number of its rows so far.
    profile: u64,
    seen: usize,
}

impl<K> Default for KeyIndexes<K> {
    fn default() -> Self {
        Self { by_key: FxHashMap::default(), keys: Vec::new(), profiles: 0 }
    }
}

impl StableNumbers {
    /// Gives the functions and threads of a profile the indexes that they had in earlier profiles. Those
    /// that are missing now stay in its tables, without frames and samples. Libs must keep their ids.
    /// O(functions + frames).
    pub fn apply(&mut self, profile: &mut Profile) {
        self.place_funcs(profile);
        self.place_threads(profile);
    }

    fn place_funcs(&mut self, profile: &mut Profile) {
        let places = self.funcs.places(profile.funcs.iter().map(|func| FuncKey::of(profile, func)));
        let mut rows = vec![None; self.funcs.keys.len()];
        for (func, place) in std::mem::take(&mut profile.funcs).into_iter().zip(&places) {
            rows[*place] = Some(func);
        }
        let strings = &mut profile.strings;
        let gone = |key: &FuncKey| Func::new(strings.intern(&key.name), key.lib);
        profile.funcs = self.funcs.filled(rows, gone);
        for frame in &mut profile.frames {
            frame.func = FuncId::from_index(places[frame.func.index()]);
        }
    }

    fn place_threads(&mut self, profile: &mut Profile) {
        if profile.processes.is_empty() {
            return;
        }
        let places = self.threads.places(profile.threads.iter().map(|thread| ThreadKey::of(profile, thread)));
        let mut rows: Vec<_> = self.threads.keys.iter().map(|_| None).collect();
        for (thread, place) in std::mem::take(&mut profile.threads).into_iter().zip(places) {
            rows[place] = Some(thread);
        }
        let processes = &profile.processes;
        let gone = |key: &ThreadKey| {
            let process = processes.iter().position(|process| *process.pid == *key.pid);
            Thread::new(ProcessIndex::from_index(process.unwrap_or(0)), &*key.tid, "")
        };
        profile.threads = self.threads.filled(rows, gone);
    }
}

impl FuncKey {
    fn of(profile: &Profile, func: &Func) -> Self {
        let source = func.source.map(|source| profile.string(profile.source(source).filename).into());
        Self { name: profile.string(func.name).into(), lib: func.lib, source }
    }
}

impl ThreadKey {
    fn of(profile: &Profile, thread: &Thread) -> Self {
        Self { pid: profile.process(thread.process).pid.as_str().into(), tid: thread.tid.as_str().into() }
    }
}

impl<K: Eq + Hash> KeyIndexes<K> {
    /// The index of each row of a profile; new rows get the next ones.
    fn places(&mut self, rows: impl Iterator<Item = K>) -> Vec<usize> {
        self.profiles += 1;
        let mut places = Vec::with_capacity(rows.size_hint().0);
        for key in rows {
            let key = Arc::new(key);
            let known = self.by_key.entry(Arc::clone(&key)).or_default();
            if known.profile != self.profiles {
                (known.profile, known.seen) = (self.profiles, 0);
            }
            if known.seen == known.numbers.len() {
                known.numbers.push(self.keys.len());
                self.keys.push(key);
            }
            places.push(known.numbers[known.seen]);
            known.seen += 1;
        }
        places
    }

    /// The rows, with placeholders for missing ones.
    fn filled<R>(&self, rows: Vec<Option<R>>, mut gone: impl FnMut(&K) -> R) -> Vec<R> {
        rows.into_iter().zip(&self.keys).map(|(row, key)| row.unwrap_or_else(|| gone(key))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::code::Frame;
    use crate::meta::Meta;
    use crate::sample::Sample;
    use crate::thread::Process;

    /// A profile with a function per name, in that order, and a thread per id with a sample in the first
    /// function.
    fn profile(names: &[&str], tids: &[&str]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        let process = builder.add_process(Process { pid: "7".to_owned(), ..Process::default() });
        let mut stack = None;
        for name in names {
            let name = builder.intern_string(name);
            let func = builder.append_func(Func::new(name, None));
            let frame = builder.append_frame(Frame::label(func));
            stack = stack.or(Some(builder.intern_stack(None, frame)));
        }
        for tid in tids {
            let thread = builder.add_thread(Thread::new(process, *tid, *tid));
            builder.add_sample(thread, Sample::new(1, stack, 0));
        }
        builder.finish()
    }

    fn names(profile: &Profile) -> Vec<&str> {
        profile.funcs().iter().map(|func| profile.string(func.name)).collect()
    }

    fn tids(profile: &Profile) -> Vec<(&str, usize)> {
        profile.threads().iter().map(|thread| (&*thread.tid, thread.samples.len())).collect()
    }

    #[test]
    fn what_was_met_keeps_its_number() {
        let mut numbers = StableNumbers::default();
        let mut first = profile(&["a", "b"], &["1", "3"]);
        numbers.apply(&mut first);
        assert_eq!((names(&first), tids(&first)), (vec!["a", "b"], vec![("1", 1), ("3", 1)]));
        let mut second = profile(&["c", "b"], &["1", "2", "3"]);
        numbers.apply(&mut second);
        assert_eq!(names(&second), ["a", "b", "c"]);
        assert_eq!(tids(&second), [("1", 1), ("3", 1), ("2", 1)]);
        // The frame of the sample is still in the same function.
        assert_eq!(second.func_name(second.frames()[0].func), "c");
        let mut third = profile(&["b"], &["2"]);
        numbers.apply(&mut third);
        assert_eq!(tids(&third), [("1", 0), ("3", 0), ("2", 1)]);
        assert_eq!(third.func_name(third.frames()[0].func), "b");
    }

    #[test]
    fn rows_of_one_name_are_distinguished_by_order() {
        let mut numbers = StableNumbers::default();
        for _ in 0..2 {
            let mut profile = profile(&["x", "x"], &["1", "1"]);
            numbers.apply(&mut profile);
            assert_eq!((names(&profile), profile.threads().len()), (vec!["x", "x"], 2));
        }
    }
}
