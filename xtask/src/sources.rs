//! Checks of all source files: each says its purpose first, is short, is `mod.rs` if it is the root of a folder, and
//! has tests with short names and limits with usual names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The folders with source files, below the root.
const FOLDERS: [&str; 4] = ["crates", "fuzz", "test-support", "xtask"];

/// The live tests.
const LIVE_TOPICS: &str = "xtask/src/live/topics";

/// The most lines of a file before its tests.
const MAX_LINES: usize = 500;

/// The most lines of a file of tests.
const MAX_TEST_LINES: usize = 700;

/// The most characters of a comment's line.
const MAX_COMMENT_LEN: usize = 120;

/// The most characters of a test's name.
const MAX_TEST_NAME_LEN: usize = 45;

/// Names of limits begin with `MAX_` or `MIN_` instead of these.
const OTHER_LIMIT_NAMES: [&str; 6] = ["MOST", "LEAST", "LONGEST", "LARGEST", "GREATEST", "SHORTEST"];

/// The faults of all source files, one on each line.
fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in FOLDERS.iter().map(|folder| sources(&root.join(folder))).collect::<Result<Vec<_>>>()?.concat()
    {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = path.strip_prefix(root).unwrap_or(&path).display();
        faults.extend(faults_of(&text).into_iter().map(|fault| format!("{place}: {fault}")));
        if is_module_folder(&path.with_extension("")) {
            faults.push(format!("{place}: the root of a folder is its mod.rs"));
        }
        if path.starts_with(root.join(LIVE_TOPICS)) {
            faults.extend(sleeps_without_reason(&text).map(|line| {
                format!("{place}:{line}: a test waits for states; a time has its reason in a comment above")
            }));
        }
        if allows_unsafe_code(&text) && !is_in_sys(&path) {
            faults.push(format!("{place}: unsafe code belongs into a module `sys`"));
        }
    }
    Ok(faults)
}

/// The source files below a folder, without what was built.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Whether an attribute of a file or an item allows unsafe code there.
fn allows_unsafe_code(text: &str) -> bool {
    let is_attribute = |line: &str| line.starts_with("#[") || line.starts_with("#![");
    let lifts =
        |line: &str| line.contains("(unsafe_code") && !line.contains("forbid(") && !line.contains("deny(");
    text.lines().map(str::trim_start).any(|line| is_attribute(line) && lifts(line))
}

/// Whether a file is a module `sys` or part of one.
fn is_in_sys(path: &Path) -> bool {
    path.with_extension("").iter().any(|part| part == "sys")
}

/// The faults of a source file.
fn faults_of(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//! ") {
        faults.push("the first line does not say what the file is for".to_owned());
    }
    let code = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code);
    let most = if code.contains("#[test]\nfn") { MAX_TEST_LINES } else { MAX_LINES };
    let lines = code.lines().count();
    if lines > most {
        faults.push(format!("{lines} lines before its tests are more than {most}"));
    }
    let long_comments = text.lines().zip(1..).filter(|(line, _)| is_long_comment(line));
    faults.extend(
        long_comments
            .map(|(_, number)| format!("the comment of line {number} is over {MAX_COMMENT_LEN} characters")),
    );
    let too_long = test_names(text).filter(|name| name.len() > MAX_TEST_NAME_LEN);
    faults.extend(too_long.map(|name| format!("{name} has {} characters", name.len())));
    faults.extend(
        limits_with_other_names(text)
            .map(|name| format!("{name} is a limit, whose name begins with MAX_ or MIN_")),
    );
    faults
}

/// The numbers of the lines that sleep and have no comment above them.
fn sleeps_without_reason(text: &str) -> impl Iterator<Item = usize> {
    let pairs = text.lines().zip(text.lines().skip(1)).zip(2..);
    let faults = pairs.filter(|((above, line), _)| {
        line.contains("thread::sleep(") && !above.trim_start().starts_with("// ")
    });
    faults.map(|(_, number)| number)
}

/// Whether a line is a comment that is too long, and not an address that cannot be wrapped.
fn is_long_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > MAX_COMMENT_LEN && !line.contains("://")
}

/// The constants that are limits and whose names do not say so in the usual way.
fn limits_with_other_names(text: &str) -> impl Iterator<Item = &str> {
    let declared = text.lines().filter_map(|line| {
        let (visibility, name) = line.split_once("const ").or_else(|| line.split_once("static "))?;
        let is_declaration = visibility.trim().is_empty() || visibility.trim_start().starts_with("pub");
        name.split_once(':').filter(|_| is_declaration).map(|(name, _)| name)
    });
    declared.filter(|name| OTHER_LIMIT_NAMES.iter().any(|other| name.starts_with(other)))
}

/// Whether a folder has sources. One beside a test may have data alone.
fn is_module_folder(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.extension().is_some_and(|it| it == "rs") || path.is_dir())
}

/// The names of the unit tests and the live tests in a source file.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    let functions = text.split("#[test]").skip(1).filter_map(|rest| {
        let (_, name) = rest.split_once("fn ")?;
        name.split_once('(').map(|(name, _)| name)
    });
    let live = ["Test::new(\"", " test(\""].into_iter().flat_map(|call| text.split(call).skip(1));
    functions.chain(live.filter_map(|rest| rest.split_once('"').map(|(name, _)| name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(faults(root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_fault_is_found() {
        let long = "x".repeat(MAX_TEST_NAME_LEN + 1);
        let good = "//! What it is.\n\n#[test]\nfn short() {}\n";
        assert_eq!(faults_of(good), Vec::<String>::new());
        assert_eq!(faults_of(&format!("use std::fs;\n{good}")).len(), 1);
        assert_eq!(faults_of(&good.replace("short", &long)), [format!("{long} has 46 characters")]);
        assert_eq!(faults_of(&format!("{good}Test::new(\"{long}\", run)")).len(), 1);
        let lines =
            |count: usize, tests: &str| faults_of(&format!("{good}{tests}{}", "\n".repeat(count))).len();
        assert_eq!(lines(MAX_TEST_LINES, ""), 1);
        assert_eq!(lines(MAX_LINES, ""), 0);
        assert_eq!(lines(MAX_TEST_LINES, "#[cfg(test)]\nmod tests {"), 0);
        let long =
            |first: &str| faults_of(&format!("//! What it is.\n{first}{}", "\n".repeat(MAX_LINES))).len();
        assert_eq!((long(""), long("#[cfg(test)]\nuse it;\n"), long("#[cfg(test)]\nmod tests {")), (1, 1, 0));
    }

    #[test]
    fn limits_are_named_max_or_min() {
        let faults = |line: &str| faults_of(&format!("//! What it is.\n{line}"));
        assert_eq!(
            faults("const MOST_LINES: usize = 1;"),
            ["MOST_LINES is a limit, whose name begins with MAX_ or MIN_"]
        );
        for name in ["LEAST", "LONGEST_PATH", "LARGEST", "GREATEST", "SHORTEST"] {
            assert_eq!(faults(&format!("    pub(crate) const {name}: usize = 1;")).len(), 1, "{name}");
        }
        let others = ["const MAX_LINES: usize = 1;", "// A const MOST: one.", "const ALMOST: bool = true;"];
        assert_eq!(others.map(|line| faults(line).len()), [0; 3]);
    }

    #[test]
    fn comments_have_at_most_120_characters() {
        let line = |count: usize| format!("    // {}", "x".repeat(count - 7));
        assert_eq!([120, 121].map(|count| faults_of(&format!("//! It.\n{}", line(count))).len()), [0, 1]);
        assert!(!is_long_comment(&format!("// https://{}", "x".repeat(120))));
        assert!(!is_long_comment(&"x".repeat(130)));
    }

    #[test]
    fn sleeps_of_live_tests_have_a_reason() {
        let lines =
            |above: &str| sleeps_without_reason(&format!("{above}\n    thread::sleep(TIME);")).count();
        assert_eq!((lines("    // It is to stay stopped."), lines("    stop();")), (0, 1));
    }

    #[test]
    fn unsafe_code_is_allowed_in_sys_modules_alone() {
        assert!(allows_unsafe_code("//! It.\n    #[expect(unsafe_code, reason = \"...\")]\n"));
        assert!(allows_unsafe_code("#![allow(unsafe_code)]"));
        assert!(!allows_unsafe_code("#![forbid(unsafe_code)]\n// (unsafe_code)"));
        assert!(["a/sys.rs", "a/sys/b.rs"].iter().all(|path| is_in_sys(Path::new(path))));
        assert!(!is_in_sys(Path::new("a/system.rs")));
    }
}
