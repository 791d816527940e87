//! The arguments of programs, for the names of their processes.

use crate::event::{Event, EventKind, Pid, Timestamp};
use rustc_hash::FxHashMap;
use std::fs;

/// Reads the arguments of each program as soon as it is heard of, and keeps them until its event's turn comes.
#[derive(Debug, Default)]
pub(crate) struct ProgramArguments {
    /// How many are wanted.
    count: usize,
    /// Of each process, by the times of its names: a program can give itself another name before the turn of its first one.
    read: FxHashMap<Pid, Vec<(Timestamp, String)>>,
}

impl ProgramArguments {
    /// The first `count` arguments of each program.
    pub(crate) fn of(count: usize) -> Self {
        Self { count, read: FxHashMap::default() }
    }

    /// Reads the arguments of a program that has just begun.
    pub(crate) fn note(&mut self, event: &Event) {
        if self.count == 0 {
            return;
        }
        match &event.kind {
            EventKind::Name { pid, tid, .. } if pid.0 == tid.0 => {
                let text = self.read(*pid);
                self.read.entry(*pid).or_default().push((event.time, text));
            }
            // The name comes before the new program's arguments are in place, what it maps comes after that.
            EventKind::Map(mapping) => {
                let Some(pid) = mapping.pid else { return };
                let last = self.read.get(&pid).and_then(|read| read.last());
                if last.is_some_and(|(_, text)| text.is_empty()) {
                    let text = self.read(pid);
                    if let Some((_, last)) = self.read.get_mut(&pid).and_then(|read| read.last_mut()) {
                        *last = text;
                    }
                }
            }
            _ => {}
        }
    }

    /// The arguments that were read when this program took its name.
    pub(crate) fn take(&mut self, pid: Pid, now: Timestamp) -> Option<String> {
        let read = self.read.get_mut(&pid)?;
        let taken = read.extract_if(.., |(time, _)| *time <= now).last();
        if read.is_empty() {
            self.read.remove(&pid);
        }
        taken.filter(|(time, _)| *time == now).map(|(_, arguments)| arguments)
    }

    fn read(&self, pid: Pid) -> String {
        let words = fs::read(format!("/proc/{}/cmdline", pid.0)).unwrap_or_default();
        first_arguments(&words, self.count)
    }
}

/// The first arguments after the program's own name, in words that each end with a zero byte. What a shell would
/// take apart is quoted.
fn first_arguments(words: &[u8], count: usize) -> String {
    let words = words.strip_suffix(&[0]).unwrap_or(words);
    let arguments = words.split(|byte| *byte == 0).skip(1).take(count);
    arguments.map(|word| quoted(&String::from_utf8_lossy(word))).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Tid;

    #[test]
    fn a_name_that_comes_before_the_turn_of_the_one_before_takes_no_arguments_away() {
        let (pid, mut arguments) = (Pid(std::process::id()), ProgramArguments::of(2));
        let name = |time| Event {
            time: Timestamp(time),
            cpu: None,
            kind: EventKind::Name { pid, tid: Tid(pid.0), name: "own".into(), exec: true },
        };
        arguments.note(&name(1));
        arguments.note(&name(2));
        let own = arguments.read(pid);
        let taken = [1, 2, 3].map(|time| arguments.take(pid, Timestamp(time)));
        assert_eq!(taken, [Some(own.clone()), Some(own), None]);
        assert!(arguments.read.is_empty());
    }

    #[test]
    fn only_the_first_arguments_are_taken() {
        let check = |words: &[u8], count, expected: &str| assert_eq!(first_arguments(words, count), expected);
        check(b"sh\0-c\0a b\0", 1, "-c");
        check(b"sh\0-c\0a b\0", 9, "-c 'a b'");
        check(b"sh\0\0x\0", 2, "'' x");
        check(b"sh\0", 3, "");
        check(b"", 3, "");
        check(b"renamed: itself", 3, "");
    }
}
