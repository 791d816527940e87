//! The words of a command line: which of them name the program, and which may distinguish it from others of
//! its name.

/// The most words of a program that are kept, and the greatest length of a word.
const MAX_WORDS: usize = 16;
const MAX_WORD: usize = 40;

/// Words in the names of options whose value may be a secret.
const SECRETS: [&str; 7] = ["pass", "pwd", "token", "key", "secret", "auth", "cred"];

/// The arguments of a program that could distinguish it from others: names of files, without their folders,
/// and plain words. Options come last, because words without a dash mostly say more. The profile may be
/// shared, so possible passwords are left out. These are words after a one-letter option, or after an option
/// that names a secret, and addresses that can contain a password.
pub(crate) fn distinctive_words<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut words, mut options) = (Vec::new(), Vec::new());
    let mut may_be_secret = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        let is_secret = (is_option || argument.contains('=')) && names_secret(argument);
        let is_address = argument.contains("://") || argument.contains('@');
        let is_left_out = is_secret || is_address || (may_be_secret && !is_option);
        may_be_secret = is_option && (argument.len() == 2 || (is_secret && !argument.contains('=')));
        let word = if is_option { argument } else { file_name(argument) };
        // Short options may have their values, such as passwords, directly after the letter.
        let is_short = is_option && !argument.starts_with("--");
        if is_left_out || is_short || !is_plain(word) {
            continue;
        }
        let retained = if is_option { &mut options } else { &mut words };
        if retained.len() < MAX_WORDS {
            retained.push(word.to_owned());
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

/// The name of the program of a process that ran before its first event. Its main thread may have taken
/// another name since. A script gets its own name, and not that of its interpreter. `words` is the program's
/// name and its arguments.
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

    fn words(line: &str) -> Vec<String> {
        distinctive_words(line.split('|'))
    }

    #[test]
    fn plain_words_and_files_tell_programs_apart() {
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
