//! The part of a function's name by which runtimes' functions are recognised, whatever the compiler, the language
//! and the version made of the rest.

use std::borrow::Cow;

/// A function's name as parts, the outermost first: `std::sync::Mutex<T>::lock` is `std`, `sync`, `Mutex`,
/// `lock`. Names of C and Go are one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionName {
    parts: Vec<String>,
}

/// The longest name that is taken apart. Longer ones are instances of generic code of users.
const MAX_LEN: usize = 4096;

/// What compilers append to the names of functions that they have split or copied.
const SUFFIXES: [&str; 9] =
    [".cold", ".part.", ".isra.", ".constprop.", ".lto_priv", ".llvm.", ".abi0", ".abiinternal", "@"];

impl FunctionName {
    /// Takes a name apart. Linear in its length.
    pub(super) fn parse(name: &str) -> Self {
        if name.len() > MAX_LEN {
            return Self { parts: Vec::new() };
        }
        let plain = without_brackets(self_type(name).as_ref());
        // A template's name begins with the type that it returns.
        let plain = plain.rsplit(' ').next().unwrap_or_default();
        let mut parts: Vec<_> = plain.split("::").filter(|part| is_of_path(part)).collect();
        let last = parts.pop().map(|last| if parts.is_empty() { of_c(last) } else { without_suffix(last) });
        parts.extend(last);
        Self { parts: parts.into_iter().map(str::to_owned).collect() }
    }

    /// Whether it ends with the parts of a path.
    pub(super) fn ends_with(&self, path: &str) -> bool {
        let mut own = self.parts.iter().rev();
        path.rsplit("::").all(|requested| own.next().is_some_and(|part| fits(part, requested)))
    }

    /// Whether it begins with the parts of a path.
    pub(super) fn begins_with(&self, path: &str) -> bool {
        let mut own = self.parts.iter();
        path.split("::").all(|requested| own.next().is_some_and(|part| fits(part, requested)))
    }

    /// Whether it is one part, as the names of C are.
    pub(super) fn is_alone(&self) -> bool {
        self.parts.len() == 1
    }
}

/// Whether a part is as requested, in which each `*` stands for any characters.
fn fits(part: &str, requested: &str) -> bool {
    let Some((beginning, rest)) = requested.split_once('*') else { return part == requested };
    let Some(mut part) = part.strip_prefix(beginning) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    if let Some(at) = part.find(middle) {
        part = &part[at + middle.len()..];
        part.ends_with(end)
    } else {
        false
    }
}

/// Parts that are no names: of closures, and of versions of Abseil and libc++.
fn is_of_path(part: &str) -> bool {
    !(part.is_empty()
        || part.starts_with('{')
        || part.starts_with("lts_")
        || matches!(part, "__1" | "_V2" | "__ndk1")
        || is_hash(part))
}

/// Whether a part is the hash that Rust appends.
fn is_hash(part: &str) -> bool {
    part.len() == 17 && part.starts_with('h') && part.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit())
}

/// Replaces `<Type as Trait>` or `<Type>` at the beginning by the type.
fn self_type(name: &str) -> Cow<'_, str> {
    let name = name.trim_start_matches('_');
    let Some(rest) = name.strip_prefix('<') else { return Cow::Borrowed(name) };
    let mut depth = 1_usize;
    let mut last = ' ';
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' => depth += 1,
            // Not the arrow of a function's type.
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        last = letter;
        if depth == 0 {
            let (inside, after) = rest.split_at(at);
            let own = inside.split(" as ").next().unwrap_or_default();
            return Cow::Owned(format!("{}{}", own.trim_start_matches(['&', '*']), &after[1..]));
        }
    }
    Cow::Borrowed(name)
}

/// Removes the arguments of templates, and everything from a function's arguments on.
fn without_brackets(name: &str) -> String {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let name = name.replace(ANONYMOUS, "");
    let (mut plain, mut depth, mut last) = (String::with_capacity(name.len()), 0_usize, ' ');
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        last = letter;
    }
    plain
}

fn without_suffix(name: &str) -> &str {
    let ends = SUFFIXES.iter().filter_map(|suffix| name.find(suffix)).filter(|at| *at > 0);
    ends.min().map_or(name, |end| &name[..end])
}

/// A function of C without the marks of internal, versioned and 64-bit names.
fn of_c(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_');
    let name = without_suffix(name);
    let shorter = name.strip_suffix("64").unwrap_or(name);
    shorter.strip_suffix("_time").unwrap_or(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> String {
        FunctionName::parse(name).parts.join("::")
    }

    #[test]
    fn names_of_one_function_are_alike() {
        for name in [
            "pthread_mutex_lock",
            "__pthread_mutex_lock",
            "___pthread_mutex_lock",
            "pthread_mutex_lock@@GLIBC_2.2.5",
        ] {
            assert_eq!(parsed(name), "pthread_mutex_lock");
        }
        for (name, expected) in [
            ("__GI___pthread_timedjoin_np64", "pthread_timedjoin_np"),
            ("__new_sem_wait_slow64.constprop.0", "new_sem_wait_slow"),
            ("runtime.futexsleep", "runtime.futexsleep"),
            ("runtime.futex.abi0", "runtime.futex"),
            (
                "std::sys::sync::mutex::futex::Mutex::lock_contended",
                "std::sys::sync::mutex::futex::Mutex::lock_contended",
            ),
            ("std::sync::mpmc::list::Channel<T>::recv::{{closure}}", "std::sync::mpmc::list::Channel::recv"),
            ("std::sync::mpmc::list::Channel<T>::recv::{closure#1}", "std::sync::mpmc::list::Channel::recv"),
            (
                "<std::sync::mpsc::Receiver<T> as core::iter::Iterator>::next",
                "std::sync::mpsc::Receiver::next",
            ),
            ("<&a::B<fn(u8) -> u8>>::run", "a::B::run"),
            (
                "core::ops::function::FnOnce::call_once::h0123456789abcdef",
                "core::ops::function::FnOnce::call_once",
            ),
            ("std::condition_variable::wait(std::unique_lock<std::mutex>&)", "std::condition_variable::wait"),
            (
                "bool std::__1::condition_variable::wait_for<long, std::ratio<1l> >(int)",
                "std::condition_variable::wait_for",
            ),
            ("absl::lts_20230802::Mutex::LockSlow(absl::lts_20230802::MuHow)", "absl::Mutex::LockSlow"),
            ("node::(anonymous namespace)::PlatformWorkerThread(void*)", "node::PlatformWorkerThread"),
            ("node::TaskQueue<v8::Task>::BlockingPop()", "node::TaskQueue::BlockingPop"),
            ("", ""),
        ] {
            assert_eq!(parsed(name), expected, "{name}");
        }
    }

    #[test]
    fn paths_are_compared_part_by_part() {
        let name = FunctionName::parse("std::sys::sync::thread_parking::futex::Parker::park_timeout");
        for path in ["Parker::park_timeout", "Parker::park*", "*ark*::*timeout", "park_timeout"] {
            assert!(name.ends_with(path), "{path}");
        }
        for path in ["Parker::park", "Other::park*", "ark_timeout", "*x*::park_timeout"] {
            assert!(!name.ends_with(path), "{path}");
        }
        assert!(name.begins_with("std::sys") && !name.begins_with("sys") && !name.is_alone());
        assert!(!FunctionName::parse("park").ends_with("Parker::park"));
    }

    /// Such names come from the files of recorded programs.
    #[test]
    fn odd_names_are_taken_apart_too() {
        for name in ["<<<<", ">>>>", "<a>", "::::", "(", "<-><", "é<ü>::ß", "@", ".cold", "64", "_time64"]
        {
            let _ = parsed(name);
        }
        assert!(!FunctionName::parse(&"a::".repeat(5000)).begins_with("a"));
    }
}
