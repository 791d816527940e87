//! Sentences that are true on Linux alone: code that all systems have says none, but where the table here says why.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::sources::sources;

/// What only Linux has, as texts name it.
const WORDS: &[&str] = &[
    "sudo ",
    "sudo,",
    "setuid",
    "control group",
    "CAP_",
    "perf_event_paranoid",
    "sysctl ",
    "as root",
    "/proc/PID",
];

/// The files that all systems have and that say it nevertheless, below `crates/nyquist/src`.
const PLACES: &[(&str, &str)] = &[
    ("system/abilities.rs", "chooses the sentences by the system"),
    ("args/record.rs", "chooses the example by the system"),
    ("args/setup.rs", "chooses the examples by the system"),
    ("args/other_tools.rs", "chooses the rows by the system; --cgroup says itself where it works"),
    ("identity.rs", "the user of sudo, which other systems have, too, where it has this meaning"),
    ("setup/replaced_program.rs", "sudo of macOS"),
    ("record/summary/cpu_quota.rs", "a quota is only in recordings of Linux"),
    ("record/summary/recording.rs", "only Linux's recorder may not read other processes"),
];

/// The files that only Linux has: modules that an attribute limits to it, and what is below them.
fn of_linux(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in sources(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "main" | "lib") | None => path.with_file_name(""),
            Some(_) => path.with_extension(""),
        };
        found.extend(limited_modules(&text).map(|module| folder.join(module)));
    }
    Ok(found)
}

/// The modules that an attribute limits to Linux.
fn limited_modules(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs: Vec<(&str, &str)> = lines.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let limited = pairs.into_iter().filter(|(above, _)| *above == "#[cfg(target_os = \"linux\")]");
    limited.filter_map(|(_, line)| line.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name))
}

/// Whether a file is below a module, or is it.
fn is_below(path: &Path, module: &Path) -> bool {
    path.starts_with(module) || path.with_extension("") == module
}

/// The lines with a text that only Linux has, without comments and tests.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split_once("mod tests {").map_or(text, |(code, _)| code);
    let says = |line: &str| {
        let is_text = !line.starts_with("//") && !line.starts_with("#[");
        is_text && WORDS.iter().any(|word| line.contains(word))
    };
    let numbered = code.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    numbered.filter(move |(_, line)| says(line))
}

/// The lines that are not in the table, and the rows of the table that name none.
fn faults(root: &Path) -> Result<Vec<String>> {
    let linux = of_linux(root)?;
    let mut unused: BTreeSet<&str> = PLACES.iter().map(|(place, _)| *place).collect();
    let mut faults = Vec::new();
    for path in sources(root)? {
        if linux.iter().any(|module| is_below(&path, module)) || path.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        let mut found = lines(&text).peekable();
        if PLACES.iter().any(|(known, _)| *known == place) {
            if found.peek().is_some() {
                unused.remove(&*place);
            }
            continue;
        }
        faults.extend(found.map(|(number, line)| format!("{place}:{number}: {line}")));
    }
    faults.extend(unused.into_iter().map(|place| format!("{place} says nothing of Linux any more")));
    Ok(faults)
}

#[test]
fn other_systems_read_nothing_of_linux_alone() {
    let found = faults(&crate::paths::root().join("crates/nyquist/src")).unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_sentence_is_found_where_all_systems_have_it() {
    let text =
        "#[cfg(target_os = \"linux\")]\npub(crate) mod agent;\nmod b;\n// sudo x\n.hint(\"sudo nyquist\")\n";
    assert_eq!(limited_modules(text).collect::<Vec<_>>(), ["agent"]);
    assert_eq!(lines(text).collect::<Vec<_>>(), [(5, ".hint(\"sudo nyquist\")")]);
    assert!(is_below(Path::new("src/agent/mod.rs"), Path::new("src/agent")));
    assert!(is_below(Path::new("src/agent.rs"), Path::new("src/agent")));
    assert!(!is_below(Path::new("src/agents.rs"), Path::new("src/agent")));
}
