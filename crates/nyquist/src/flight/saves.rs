//! How often a running recording is saved, how many times, and under which names.

use crate::utc_date::{date_text, time_text};
use nyquist_convert::event::Timestamp;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The saves of a recording.
#[derive(Debug)]
pub(super) struct SavePolicy {
    /// The file of the profile at the end.
    file: PathBuf,
    pause: Duration,
    max: u32,
    saved: Vec<PathBuf>,
    last: Option<Timestamp>,
    named: Vec<PathBuf>,
}

impl SavePolicy {
    /// Saves beside this file: at most `max`, and those of triggers with a pause between them.
    pub(super) fn new(file: &Path, pause: Duration, max: u32) -> Self {
        Self { file: file.to_owned(), pause, max, saved: Vec::new(), last: None, named: Vec::new() }
    }

    /// How many profiles were saved.
    pub(super) fn made(&self) -> u32 {
        self.saved.len() as u32
    }

    /// Why there is no further save.
    pub(super) fn denied(&self) -> Option<String> {
        if self.file == Path::new("-") {
            return Some("the standard output takes one profile, at the end: name a file with -o".to_owned());
        }
        (self.made() >= self.max)
            .then(|| format!("{} profiles have been saved, which is the most (--max-saves)", self.max))
    }

    /// Whether a trigger may save now.
    pub(super) fn allows_trigger(&self, now: Timestamp) -> bool {
        let has_rested = |last: Timestamp| now.0.saturating_sub(last.0) >= self.pause.as_nanos() as u64;
        self.denied().is_none() && self.last.is_none_or(has_rested)
    }

    /// Up to when the last saved profile reaches.
    pub(super) fn saved_until(&self) -> Timestamp {
        self.last.unwrap_or(Timestamp(0))
    }

    /// Notes a profile that was saved.
    pub(super) fn note_saved(&mut self, path: PathBuf, now: Timestamp) {
        self.saved.push(path);
        self.last = Some(now);
    }

    /// The name of the next file: that of the profile at the end, with the time (UTC).
    pub(super) fn next_path(&mut self) -> PathBuf {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let time = format!("{}T{}Z", date_text(seconds).replace('-', ""), time_text(seconds));
        let names = (1..).map(|number| {
            with_word(&self.file, &if number == 1 { time.clone() } else { format!("{time}-{number}") })
        });
        let path =
            names.into_iter().find(|name| !self.named.contains(name)).unwrap_or_else(|| self.file.clone());
        self.named.push(path.clone());
        path
    }
}

/// A file's name with a word before its endings: `profile-WORD.json.gz`.
fn with_word(file: &Path, word: &str) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // A hidden file's dot does not begin its ending.
    let end = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    let (stem, endings) = name.split_at(end);
    file.with_file_name(format!("{stem}-{word}{endings}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_before_the_endings() {
        for (file, named) in [
            ("profile.json.gz", "profile-x.json.gz"),
            ("a.b/c", "a.b/c-x"),
            ("/tmp/.p.pb.gz", "/tmp/.p-x.pb.gz"),
        ] {
            assert_eq!(with_word(Path::new(file), "x"), Path::new(named), "{file}");
        }
    }

    #[test]
    fn saves_rest_and_end() {
        let mut policy = SavePolicy::new(Path::new("p.json"), Duration::from_nanos(100), 2);
        assert!(policy.allows_trigger(Timestamp(5)));
        policy.note_saved("1".into(), Timestamp(10));
        assert_eq!([50, 109, 110].map(|now| policy.allows_trigger(Timestamp(now))), [false, false, true]);
        assert_eq!(policy.denied(), None, "requests do not rest");
        policy.note_saved("2".into(), Timestamp(20));
        assert!(!policy.allows_trigger(Timestamp(9000)) && policy.denied().unwrap().contains("--max-saves"));
        assert!(SavePolicy::new(Path::new("-"), Duration::ZERO, 2).denied().is_some());
        assert_ne!(policy.next_path(), policy.next_path(), "two in a second");
    }
}
