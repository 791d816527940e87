//! Messages to the user about files beside a recording that are not used, or only in part.

use crate::event::Pid;
use crate::files::opened::FileDenied;
use rustc_hash::FxHashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The most sentences. Further ones are only counted.
const MAX_SENTENCES: usize = 20;

/// Messages about files that a process has beside its recording, a sentence each.
#[derive(Debug, Default)]
pub(crate) struct SideFileNotes(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    about: FxHashSet<(Pid, &'static str)>,
    sentences: Vec<String>,
    more: usize,
}

impl SideFileNotes {
    /// Notes that a process's file of a kind, such as `perf map`, is not used. It is reported once for each
    /// process.
    pub(crate) fn refused(&self, pid: Pid, kind: &'static str, path: &Path, why: &FileDenied) {
        if why.deserves_message() {
            let sentence =
                || format!("the {kind} {} of process {} is not used: {why}", path.display(), pid.0);
            self.add_once((pid, kind), sentence);
        }
    }

    /// Notes that a file has more contents than fit into `most` bytes of memory.
    pub(crate) fn is_too_large(&self, kind: &'static str, path: &Path, most: u64) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = format!(
            "not all of the {kind} {} is used: it needs more than {} MB of memory (--max-memory allows more)",
            path.display(),
            most / 1_000_000
        );
        // The same sentence comes repeatedly while a running recording is viewed.
        if !notes.sentences.contains(&sentence) {
            notes.add(sentence);
        }
    }

    /// All messages.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = (notes.more > 0)
            .then(|| format!("{} more such files are not used, or not all of them", notes.more));
        notes.sentences.iter().cloned().chain(more).collect()
    }

    fn add_once(&self, about: (Pid, &'static str), sentence: impl FnOnce() -> String) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.about.insert(about) {
            notes.add(sentence());
        }
    }
}

impl Notes {
    fn add(&mut self, sentence: String) {
        if self.sentences.len() < MAX_SENTENCES { self.sentences.push(sentence) } else { self.more += 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_named_once_and_many_counted() {
        let notes = SideFileNotes::default();
        for pid in (0..30).chain(0..30) {
            notes.refused(Pid(pid), "perf map", Path::new("/tmp/perf-7.map"), &FileDenied::Owner(9));
        }
        notes.refused(Pid(99), "perf map", Path::new("/tmp/perf-99.map"), &FileDenied::Absent);
        let sentences = notes.sentences();
        assert_eq!(
            sentences[0],
            "the perf map /tmp/perf-7.map of process 0 is not used: the file belongs to user 9, who is neither the process's user nor root"
        );
        assert_eq!(
            (sentences.len(), &*sentences[20]),
            (21, "10 more such files are not used, or not all of them")
        );
    }
}
