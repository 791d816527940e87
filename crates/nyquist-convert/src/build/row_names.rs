//! Names that distinguish processes of equal names in the front end. Its rows are wide enough for a name and
//! one or two words.

use super::profile_time::since;
use crate::event::Timestamp;
use crate::processes::process::Process;
use crate::processes::thread::Thread;
use nyquist_profile::{ProcessIndex, ProfileBuilder};
use rustc_hash::FxHashMap;

/// Names that many runtimes give to their main threads. They carry no other information.
const MAIN: [&str; 3] = ["MainThread", "main", "Main Thread"];

/// For each process with a row whose name other processes also have: the first of its words that not all of
/// them have. O(words).
fn distinct_labels<'a>(
    processes: impl Iterator<Item = &'a Process> + Clone,
) -> FxHashMap<ProcessIndex, &'a str> {
    let mut groups: FxHashMap<&str, Vec<(ProcessIndex, &Process)>> = FxHashMap::default();
    for process in processes {
        if let Some(index) = process.index {
            groups.entry(&process.name).or_default().push((index, process));
        }
    }
    let mut labels = FxHashMap::default();
    for group in groups.values().filter(|group| group.len() > 1) {
        let mut users: FxHashMap<&str, usize> = FxHashMap::default();
        for (_, process) in group {
            let mut words: Vec<&str> = process.words.iter().map(String::as_str).collect();
            words.sort_unstable();
            words.dedup();
            for word in words {
                *users.entry(word).or_default() += 1;
            }
        }
        for (index, process) in group {
            let differs = |word: &&String| users.get(word.as_str()).is_some_and(|&users| users < group.len());
            labels.extend(process.words.iter().find(differs).map(|word| (*index, word.as_str())));
        }
    }
    labels
}

/// The name of the row of a process's main thread: the program, and the word that distinguishes it. The
/// thread's own name is appended if it differs and is informative.
fn main_row(process: &Process, own_name: &str, label: Option<&str>) -> String {
    let mut name = process.full_name();
    if let Some(label) = label.filter(|_| process.arguments.is_empty()) {
        name = format!("{name} {label}");
    }
    let is_new = !process.name.starts_with(own_name) && !MAIN.contains(&own_name);
    if is_new && !own_name.is_empty() { format!("{name} ({own_name})") } else { name }
}

/// Names the rows of main threads so that processes of one name can be distinguished. If a process's main
/// thread has no row, the row of its first thread gets the name.
pub(crate) fn name_main_threads(builder: &mut ProfileBuilder, processes: &[&Process]) {
    let labels = distinct_labels(processes.iter().copied());
    for process in processes {
        let label = process.index.and_then(|index| labels.get(&index)).copied();
        let rows = process.threads.values().filter_map(|thread| Some((thread.index?, &thread.name)));
        let first = rows.min_by_key(|(index, _)| (!builder.profile().thread(*index).is_main, *index));
        if let Some((index, name)) = first {
            builder.thread_mut(index).name = main_row(process, name, label);
        }
    }
}

/// Gives the rows of a process and of its threads the names and lifetimes that are known by now.
pub(crate) fn name_process(builder: &mut ProfileBuilder, process: &Process, zero: Timestamp) {
    let since_zero = |time: Timestamp| since(zero, time);
    if let Some(index) = process.index {
        let row = builder.process_mut(index);
        if !process.reuses_row {
            row.name = process.full_name();
            row.start = since_zero(process.program_start.unwrap_or(process.start));
        }
        row.end = process.end.map(since_zero);
    }
    let mut threads: Vec<&Thread> = process.threads.values().map(|thread| &**thread).collect();
    threads.sort_unstable_by_key(|thread| thread.start);
    for Thread { index, name, start, end, reuses_row, .. } in threads {
        if let Some(index) = *index {
            let row = builder.thread_mut(index);
            if !*reuses_row {
                row.name = if row.is_main { process.full_name() } else { name.clone() };
                row.start = since_zero(process.program_start.map_or(*start, |program| program.max(*start)));
            }
            row.end = end.map(since_zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::program_words::distinctive_words;
    use nyquist_resources::Budget;

    fn words(line: &str) -> Vec<String> {
        distinctive_words(line.split('|'))
    }

    #[test]
    fn equal_names_have_the_first_word_that_differs() {
        let mut processes: Vec<Process> =
            [("cc1", "-quiet|a.c"), ("cc1", "-quiet|b.c"), ("cc1", "-quiet"), ("ls", "x"), ("ls", "x")]
                .iter()
                .map(|(name, line)| {
                    let mut process = Process::new(name, Timestamp(1), &Budget::default());
                    process.words = words(line);
                    process
                })
                .collect();
        for (at, process) in processes.iter_mut().enumerate() {
            process.index = Some(ProcessIndex::from_index(at));
        }
        let labels = distinct_labels(processes.iter());
        let rows = processes
            .iter()
            .map(|process| main_row(process, &process.name, labels.get(&process.index.unwrap()).copied()));
        assert_eq!(rows.collect::<Vec<_>>(), ["cc1 a.c", "cc1 b.c", "cc1", "ls", "ls"]);
    }

    #[test]
    fn a_row_says_what_the_main_thread_calls_itself() {
        let process = Process::new("a-program-of-a-long-name", Timestamp(1), &Budget::default());
        let check = |own, expected| assert_eq!(main_row(&process, own, None), expected, "{own}");
        check("a-program-of-a-", "a-program-of-a-long-name");
        check("MainThread", "a-program-of-a-long-name");
        check("", "a-program-of-a-long-name");
        check("worker 3", "a-program-of-a-long-name (worker 3)");
    }
}
