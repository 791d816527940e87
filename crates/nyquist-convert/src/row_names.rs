//! What tells processes of equal names apart in the front end, whose rows have room for a name and a word or two.

use crate::track::Process;
use nyquist_profile::ProcessIndex;
use rustc_hash::FxHashMap;

/// How many of a program's words are kept, and how long such a word may be.
const MAX_WORDS: usize = 16;
const MAX_WORD: usize = 40;

/// Words of options behind which something secret may stand.
const SECRETS: [&str; 7] = ["pass", "pwd", "token", "key", "secret", "auth", "cred"];

/// Names that many runtimes give to their main threads, and that say no more than that.
const MAIN: [&str; 3] = ["MainThread", "main", "Main Thread"];

/// Of a program's arguments those that could tell it apart from others: names of files, without their folders, and plain words.
/// Options come last, because words without a dash mostly say more. The profile may be passed on, so what can be a password is left
/// out: what stands behind an option of one letter, or behind one that names a secret, and addresses that can hold one.
pub(crate) fn telling_words<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut words, mut options) = (Vec::new(), Vec::new());
    let mut may_be_secret = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        let is_secret = (is_option || argument.contains('=')) && names_secret(argument);
        let is_address = argument.contains("://") || argument.contains('@');
        let is_left_out = is_secret || is_address || (may_be_secret && !is_option);
        may_be_secret = is_option && (argument.len() == 2 || (is_secret && !argument.contains('=')));
        let word = if is_option { argument } else { file_name(argument) };
        // Short options may have their values, such as passwords, right behind the letter.
        let is_short = is_option && !argument.starts_with("--");
        if is_left_out || is_short || !is_plain(word) {
            continue;
        }
        let kept = if is_option { &mut options } else { &mut words };
        if kept.len() < MAX_WORDS {
            kept.push(word.to_owned());
        }
    }
    words.append(&mut options);
    words.truncate(MAX_WORDS);
    words
}

fn names_secret(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    SECRETS.iter().any(|secret| lower.contains(secret))
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

fn is_plain(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.+=:,".contains(letter);
    !word.is_empty() && word.len() <= MAX_WORD && word.chars().all(is_plain)
}

/// For each process with a row whose name others have, too: the first of its words that not all of them have. O(words).
pub(crate) fn told_apart<'a>(
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

/// The name of the row of a process's main thread: the program, what tells it apart, and the thread's own name if it took another
/// one that says something.
pub(crate) fn main_row(process: &Process, own_name: &str, label: Option<&str>) -> String {
    let mut name = process.full_name();
    if let Some(label) = label.filter(|_| process.arguments.is_empty()) {
        name = format!("{name} {label}");
    }
    let is_new = !process.name.starts_with(own_name) && !MAIN.contains(&own_name);
    if is_new && !own_name.is_empty() { format!("{name} ({own_name})") } else { name }
}

/// The name of the program of a process that ran before it was heard of. Its main thread may have taken another name since;
/// a script has its own, and not that of its interpreter. `words` is the program's name and its arguments.
pub(crate) fn program_name<'a>(own_name: &'a str, words: &[&'a str]) -> &'a str {
    let names = || words.iter().take(4).map(|word| file_name(word));
    if own_name.is_empty() || names().any(|name| name.starts_with(own_name)) {
        return own_name;
    }
    match words.first().map(|word| file_name(word)) {
        Some(name) if is_plain(name) && !name.starts_with('-') => name,
        _ => own_name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Timestamp;

    fn words(line: &str) -> Vec<String> {
        telling_words(line.split('|'))
    }

    #[test]
    fn plain_words_and_names_of_files_tell_programs_apart() {
        let check = |line, expected: &[&str]| assert_eq!(words(line), expected, "{line}");
        check("-quiet|-o|/tmp/a b.o|src/lib/main.c", &["main.c"]);
        check("--crate-name|serde|/x/src/lib.rs", &["serde", "lib.rs", "--crate-name"]);
        check("-c|echo \"$x\"; ls", &[]);
        check("-phunter2|DB_PASSWORD=hunter2|x=1", &["x=1"]);
        check("--password|hunter2|db", &["db"]);
        check("--api-token=abc|--type=gpu", &["--type=gpu"]);
        check("-p|hunter2|ssh|ann@host|https://ann:hunter2@host", &["ssh"]);
        check("/|", &[]);
        check(&["x"; 99].join("|"), &["x"; MAX_WORDS]);
    }

    #[test]
    fn equal_names_have_the_first_word_that_differs() {
        let mut processes: Vec<Process> =
            [("cc1", "-quiet|a.c"), ("cc1", "-quiet|b.c"), ("cc1", "-quiet"), ("ls", "x"), ("ls", "x")]
                .iter()
                .map(|(name, line)| {
                    let mut process = Process::new(name, Timestamp(1));
                    process.words = words(line);
                    process
                })
                .collect();
        for (at, process) in processes.iter_mut().enumerate() {
            process.index = Some(ProcessIndex::from_index(at));
        }
        let labels = told_apart(processes.iter());
        let rows = processes
            .iter()
            .map(|process| main_row(process, &process.name, labels.get(&process.index.unwrap()).copied()));
        assert_eq!(rows.collect::<Vec<_>>(), ["cc1 a.c", "cc1 b.c", "cc1", "ls", "ls"]);
    }

    #[test]
    fn a_row_says_what_the_main_thread_calls_itself() {
        let process = Process::new("a-program-of-a-long-name", Timestamp(1));
        let check = |own, expected| assert_eq!(main_row(&process, own, None), expected, "{own}");
        check("a-program-of-a-", "a-program-of-a-long-name");
        check("MainThread", "a-program-of-a-long-name");
        check("", "a-program-of-a-long-name");
        check("worker 3", "a-program-of-a-long-name (worker 3)");
    }

    #[test]
    fn a_running_process_is_called_as_its_program() {
        let check = |own, words: &[&'static str], expected| {
            assert_eq!(program_name(own, words), expected, "{own}");
        };
        check("MainThread", &["/usr/bin/node", "x.js"], "node");
        check("script.py", &["python3", "-u", "/srv/script.py"], "script.py");
        check("a-program-of-a-", &["/bin/a-program-of-a-long-name"], "a-program-of-a-");
        check("bash", &["-bash"], "bash");
        check("nginx", &["nginx: master process /usr/sbin/nginx"], "nginx");
        check("kthreadd", &[], "kthreadd");
        check("other", &["two words"], "other");
    }
}
