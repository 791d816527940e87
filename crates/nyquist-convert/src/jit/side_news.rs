//! What the user should know of files beside a recording: which are not used, and of which only a part.

use crate::event::Pid;
use crate::jit::side_file::Refusal;
use rustc_hash::FxHashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The most sentences; what is more is counted.
const MOST: usize = 20;

/// What happened to files that a process has beside its recording, a sentence each.
#[derive(Debug, Default)]
pub(crate) struct SideNews(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    about: FxHashSet<(Pid, &'static str)>,
    sentences: Vec<String>,
    more: usize,
}

impl SideNews {
    /// A process's file of that kind, as `perf map`, is not used. Told once a process.
    pub(crate) fn refused(&self, pid: Pid, kind: &'static str, path: &Path, why: &Refusal) {
        if why.is_worth_telling() {
            let told = || format!("the {kind} {} of process {} is not used: {why}", path.display(), pid.0);
            self.tell((pid, kind), told);
        }
    }

    /// A file has more than fits into `most` bytes of memory.
    pub(crate) fn is_too_large(&self, kind: &'static str, path: &Path, most: u64) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = format!(
            "not all of the {kind} {} is used: it needs more than {} MB of memory (--max-memory allows more)",
            path.display(),
            most / 1_000_000
        );
        // Asked for again and again while a recording is watched.
        if !told.sentences.contains(&sentence) {
            told.add(sentence);
        }
    }

    /// Everything that was told.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = (told.more > 0)
            .then(|| format!("{} more such files are not used, or not all of them", told.more));
        told.sentences.iter().cloned().chain(more).collect()
    }

    fn tell(&self, about: (Pid, &'static str), sentence: impl FnOnce() -> String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.about.insert(about) {
            told.add(sentence());
        }
    }
}

impl Told {
    fn add(&mut self, sentence: String) {
        if self.sentences.len() < MOST { self.sentences.push(sentence) } else { self.more += 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_told_of_once_and_many_counted() {
        let news = SideNews::default();
        for pid in (0..30).chain(0..30) {
            news.refused(Pid(pid), "perf map", Path::new("/tmp/perf-7.map"), &Refusal::Owner(9));
        }
        news.refused(Pid(99), "perf map", Path::new("/tmp/perf-99.map"), &Refusal::Absent);
        let sentences = news.sentences();
        assert_eq!(
            sentences[0],
            "the perf map /tmp/perf-7.map of process 0 is not used: it belongs to user 9, who is neither the process's user nor root"
        );
        assert_eq!(
            (sentences.len(), &*sentences[20]),
            (21, "10 more such files are not used, or not all of them")
        );
    }
}
