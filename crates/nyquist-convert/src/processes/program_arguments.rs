//! The arguments of programs, for the names of their processes.

use super::arguments::Arguments;
use crate::event::{Event, EventKind, Pid, Timestamp};
use crate::processes::program_words::{distinctive_words, program_name};
use crate::targets::Targets;
use nyquist_resources::Budget;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs;

/// The bytes of a command line that are read.
const LOOKED_AT: usize = 8192;

/// Reads the arguments of each program as soon as it appears, and keeps them until its event is converted.
#[derive(Debug, Default)]
pub(crate) struct ProgramArguments {
    /// How many arguments are requested in names.
    count: usize,
    /// Whether the words that distinguish processes of one name are requested.
    wants_distinctive_words: bool,
    /// The arguments of each process, by the times of its names. A program can rename itself before its first
    /// name event is converted.
    read: FxHashMap<Pid, Vec<(Timestamp, CommandLine)>>,
    /// The processes that had a name event.
    heard_of: FxHashSet<Pid>,
    /// How much memory the arguments of all programs may take.
    budget: Budget,
    /// How many programs have more arguments than were read.
    cut: u64,
    /// How many programs have arguments that were beyond the budget.
    left_out: u64,
    targets: Targets,
}

/// The command line of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The first arguments.
    pub(crate) arguments: Arguments,
    /// The words that may distinguish the process from others of its name.
    pub(crate) words: Vec<String>,
    /// The unchanged first words, including the program's own name.
    first: Vec<String>,
    /// The main thread's name just after they were read.
    main_thread: String,
}

impl CommandLine {
    /// The name of a program that ran before its first event, whose main thread had the name `own_name` then.
    /// If the thread had another name when the words were read, it had become another program since, and the
    /// words are of that program.
    pub(crate) fn program_name<'a>(&'a self, own_name: &'a str) -> &'a str {
        if self.main_thread != own_name {
            return own_name;
        }
        let words: Vec<&str> = self.first.iter().map(String::as_str).collect();
        program_name(own_name, &words)
    }
}

impl ProgramArguments {
    /// Reads this many arguments of each program, and if requested, the words that distinguish processes of one
    /// name. The arguments of all programs take at most as much memory as the budget has.
    pub(crate) fn new(
        (count, wants_distinctive_words): (usize, bool),
        budget: Budget,
        targets: Targets,
    ) -> Self {
        Self { count, wants_distinctive_words, budget, targets, ..Self::default() }
    }

    /// Messages to the user about arguments that are missing.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let programs = |count| if count == 1 { "1 program".to_owned() } else { format!("{count} programs") };
        let cut = (self.cut > 0).then(|| {
            let most = LOOKED_AT / 1024;
            format!("the arguments of {} are cut: names have at most {most} KiB of them", programs(self.cut))
        });
        let left_out = (self.left_out > 0).then(|| {
            format!(
                "the arguments of {} are left out: all together would take more than {} MiB of memory (--max-memory allows more)",
                programs(self.left_out),
                self.budget.most() >> 20
            )
        });
        cut.into_iter().chain(left_out)
    }

    /// Reads the arguments of a program that has just begun.
    pub(crate) fn note(&mut self, event: &Event) {
        if self.count == 0 && !self.wants_distinctive_words {
            return;
        }
        match &event.kind {
            EventKind::Name { pid, tid, exec, .. } if pid.0 == tid.0 => {
                // A new name alone does not change the words that distinguish processes.
                let is_new = self.heard_of.insert(*pid) || *exec;
                if is_new || self.count > 0 {
                    let line = self.read(*pid);
                    self.read.entry(*pid).or_default().push((event.time, line));
                }
            }
            EventKind::Exit { pid, tid } if pid.0 == tid.0 => {
                self.heard_of.remove(pid);
            }
            // The name event comes before the new program's arguments are in place. Its mappings come after
            // that.
            EventKind::Map(mapping) => {
                let Some(pid) = mapping.pid else { return };
                let last = self.read.get(&pid).and_then(|read| read.last());
                if last.is_some_and(|(_, line)| line.arguments.is_empty() && line.words.is_empty()) {
                    let line = self.read(pid);
                    if let Some((_, last)) = self.read.get_mut(&pid).and_then(|read| read.last_mut()) {
                        *last = line;
                    }
                }
            }
            _ => {}
        }
    }

    /// The arguments that were read when this program took its name.
    pub(crate) fn take(&mut self, pid: Pid, now: Timestamp) -> Option<CommandLine> {
        let read = self.read.get_mut(&pid)?;
        let taken = read.extract_if(.., |(time, _)| *time <= now).last();
        if read.is_empty() {
            self.read.remove(&pid);
        }
        taken.filter(|(time, _)| *time == now).map(|(_, line)| line)
    }

    fn read(&mut self, pid: Pid) -> CommandLine {
        let line = self.targets.command_line(pid);
        let arguments = self.arguments_in(&line);
        if !self.wants_distinctive_words {
            return CommandLine { arguments, ..CommandLine::default() };
        }
        let line = String::from_utf8_lossy(&line[..line.len().min(LOOKED_AT)]);
        let words = || line.trim_end_matches('\0').split('\0');
        let first = words().take(4).map(str::to_owned).collect();
        CommandLine {
            arguments,
            words: distinctive_words(words().skip(1)),
            first,
            main_thread: main_thread(pid),
        }
    }

    /// The requested arguments in a command line.
    fn arguments_in(&mut self, line: &[u8]) -> Arguments {
        let mut text = first_arguments(&line[..line.len().min(LOOKED_AT)], self.count);
        // If fewer are requested than were read, nothing is missing.
        let words = line.split(|byte| *byte == 0).count() - 1;
        if line.len() > LOOKED_AT && self.count > 0 && words <= self.count {
            text.push('…');
            self.cut += 1;
        }
        let arguments = Arguments::new(text, &self.budget);
        self.left_out += u64::from(arguments.is_none());
        arguments.unwrap_or_default()
    }
}

/// The current name of a process's main thread. It is empty if the process has ended.
fn main_thread(pid: Pid) -> String {
    let name = fs::read(format!("/proc/{}/comm", pid.0)).unwrap_or_default();
    String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned()
}

/// The first arguments after the program's own name, in words that each end with a zero byte. Words that a
/// shell would split are quoted.
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
    fn an_early_second_name_takes_no_arguments_away() {
        let pid = Pid(std::process::id());
        let mut arguments = ProgramArguments::new((2, false), Budget::default(), Targets::default());
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
    #[cfg_attr(not(target_os = "linux"), ignore = "the words of other processes are read in /proc")]
    fn a_program_is_looked_at_again_after_exec() {
        let pid = Pid(std::process::id());
        let mut arguments = ProgramArguments::new((0, true), Budget::default(), Targets::default());
        let name = |time, exec| Event {
            time: Timestamp(time),
            cpu: None,
            kind: EventKind::Name { pid, tid: Tid(pid.0), name: "own".into(), exec },
        };
        for event in [name(1, false), name(2, false), name(3, true)] {
            arguments.note(&event);
        }
        let taken = [1, 2, 3].map(|time| arguments.take(pid, Timestamp(time)).is_some());
        assert_eq!(taken, [true, false, true]);
        let (line, own) = (arguments.read(pid), std::env::args().next().unwrap());
        assert_eq!(line.first.first(), Some(&own));
        assert!(own.rsplit('/').next().unwrap().starts_with(&line.main_thread), "{line:?}");
    }

    #[test]
    fn a_later_programs_words_name_no_earlier_one() {
        let line = |main_thread: &str| CommandLine {
            first: vec!["/usr/bin/server".into()],
            main_thread: main_thread.into(),
            ..CommandLine::default()
        };
        assert_eq!(line("MainThread").program_name("MainThread"), "server");
        // The process was found as a fork of the launcher, but its words were read after it had become the
        // server.
        assert_eq!(line("server").program_name("launcher"), "launcher");
        assert_eq!(line("").program_name("launcher"), "launcher");
    }

    #[test]
    fn long_arguments_are_cut_and_many_left_out() {
        let mut arguments = ProgramArguments::new((9, false), Budget::new(20_000), Targets::default());
        let line = |len| [b"sh\0".to_vec(), vec![b'a'; len]].concat();
        let short = arguments.arguments_in(&line(3));
        assert_eq!((&*short, arguments.notes().count()), ("aaa", 0));
        let cut = arguments.arguments_in(&line(LOOKED_AT));
        assert_eq!((cut.chars().count(), cut.chars().last()), (LOOKED_AT - 2, Some('…')));
        let retained: Vec<_> = (0..4).map(|_| arguments.arguments_in(&line(LOOKED_AT - 3))).collect();
        assert_eq!(retained.iter().filter(|retained| !retained.is_empty()).count(), 1);
        let notes: Vec<_> = arguments.notes().collect();
        assert!(notes[0].starts_with("the arguments of 1 program are cut"), "{notes:?}");
        assert!(notes[1].starts_with("the arguments of 3 programs are left out"), "{notes:?}");
        drop((retained, cut));
        assert!(!arguments.arguments_in(&line(LOOKED_AT - 3)).is_empty());
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
