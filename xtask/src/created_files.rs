//! The places in the code that create, open for writing, rename or give away files. Each has a reason in the table
//! here. An output goes through `crates/nyquist/src/output`, which follows no other user's links.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::sources::sources;

/// The files with such places, below `crates`, and what they write to.
const PLACES: &[(&str, &str)] = &[
    ("nyquist/src/output/files/linux/pending.rs", "outputs: the place of a folder that is held open"),
    ("nyquist/src/output/files/other/mod.rs", "outputs on other systems"),
    ("nyquist/src/output/files/other/macos.rs", "outputs on macOS: new files"),
    ("nyquist/src/output/files/other/windows.rs", "outputs on Windows: new files"),
    ("nyquist/src/ctl/folder.rs", "the socket of a recording, in its user's runtime folder"),
    ("nyquist/src/setup/linux/apply.rs", "the kernel's settings"),
    ("nyquist/src/setup/linux/capabilities.rs", "an attribute of this program's own open file"),
    ("nyquist/src/setup/replaced_program.rs", "a signed copy of this program beside it, always a new file"),
    ("nyquist-download/src/cache_file.rs", "the cache of downloads, with the user's rights"),
    ("nyquist-symbols/src/cache/cached_answers.rs", "the cache of names, with the user's rights"),
    ("nyquist-symbols/src/cache/disk.rs", "the cache of names, with the user's rights"),
    ("nyquist-system/src/linux_anonymous_file.rs", "files without a name"),
    ("nyquist-system/src/other_anonymous_file.rs", "files whose name is removed at once"),
    ("nyquist-spool/src/path_walk.rs", "the folder of spools and those above it, not through others' links"),
    ("nyquist-spool/src/folder/mod.rs", "spools, beneath a folder of the user's, with the user's rights"),
    ("nyquist-system/src/unix.rs", "private folders, and the rights of open files"),
    ("nyquist-system/src/windows.rs", "private folders"),
    ("nyquist/src/delegates/linux.rs", "the name of a delegate, in its own /proc"),
    ("nyquist-convert/src/targets/answering.rs", "a file in memory, for an answer"),
    ("nyquist-convert/src/targets/own_mounts.rs", "a file in memory, to learn its device"),
    ("nyquist-convert/src/modules/memfd/linux.rs", "a file in memory, to learn its device"),
    (
        "nyquist-record/src/linux/allocations/preload.rs",
        "the library to preload, in the user's cache or the recording's own folder",
    ),
    ("nyquist-alloc/build.rs", "the library, when it is built"),
    ("nyquist-record/src/linux/cgroup.rs", "control groups, below the recorder's own"),
    (
        "nyquist-record/src/linux/command_group.rs",
        "the root control group's set of controllers, which stays as it was",
    ),
    ("nyquist-record/src/linux/markers/folder.rs", "gives away the folder of marker files by its descriptor"),
    ("nyquist-record/src/linux/sys/beneath.rs", "the folder of marker files, beneath a descriptor"),
    ("nyquist-record/src/macos/pure/copies.rs", "copies of programs in a private folder"),
    ("nyquist-record/src/macos/sign.rs", "a list for codesign in a private folder"),
    ("nyquist-tracing/src/sys/linux.rs", "the control file in memory, by the profiled program"),
    ("nyquist/src/option_reference.rs", "the reference of the options, by a test"),
    ("nyquist-tracing/src/ring.rs", "rings of markers, by the profiled program"),
    ("nyquist-viewer/build.rs", "built files of the page"),
];

/// The calls that create files, open them for writing, rename them or give them away.
const CALLS: &[&str] = &[
    "File::create",
    ".create_new(true)",
    ".create(true)",
    ".write(true)",
    ".append(true)",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "renameat",
    "hard_link(",
    "linkat(AT",
    "symlink(",
    "symlinkat(",
    "create_dir",
    "DirBuilder::new()",
    "mkdirat(",
    "mkfifo",
    "mknod",
    "OFlags::CREATE",
    "OFlags::TMPFILE",
    "O_CREAT",
    "memfd_create(",
    "set_permissions(",
    "setxattr(",
    "fsetxattr(",
    "chown(",
    "fchown(",
    "lchown(",
    "UnixListener::bind",
    "tempfile",
    "generate_to(",
];

/// The text of a source file without its tests.
fn code(text: &str) -> &str {
    text.split_once("mod tests {").map_or(text, |(code, _)| code)
}

/// The lines of code that create files.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let has = move |line: &str, call: &str| {
        line.match_indices(call)
            .any(|(at, _)| call.starts_with('.') || !line[..at].ends_with(is_part_of_name))
    };
    let creates = move |line: &str| {
        let is_code = !line.starts_with("//") && !line.starts_with("use ");
        is_code && CALLS.iter().any(|call| has(line, call))
    };
    let numbered = code(text).lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    numbered.filter(move |(_, line)| creates(line))
}

/// Whether a path is that of tests or examples.
fn is_test(place: &Path) -> bool {
    let mut parts = place.iter().map(|part| part.to_string_lossy());
    parts.any(|part| ["tests", "examples", "tests.rs"].contains(&&*part))
}

/// The places that are not in the table, and the rows of the table that name none.
fn faults(crates: &Path) -> Result<Vec<String>> {
    let mut unused: BTreeSet<&str> = PLACES.iter().map(|(place, _)| *place).collect();
    let mut faults = Vec::new();
    for path in sources(crates)? {
        let place = path.strip_prefix(crates)?;
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let found: Vec<_> = if is_test(place) { Vec::new() } else { lines(&text).collect() };
        let place = place.to_string_lossy().replace('\\', "/");
        if PLACES.iter().any(|(known, _)| *known == place) {
            if !found.is_empty() {
                unused.remove(&*place);
            }
            continue;
        }
        faults.extend(found.into_iter().map(|(number, line)| format!("{place}:{number}: {line}")));
    }
    faults.extend(unused.into_iter().map(|place| format!("{place} creates no files any more")));
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_that_create_files_are_known() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
        assert_eq!(faults(&crates).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_call_that_creates_a_file_is_found() {
        let text = "use std::fs::File;\nfn f() {\n    File::create(\"x\");\n    PendingFile::create(\"x\");\n}\n// fs::write(\n#[cfg(test)]\nmod tests {\n    fs::write(\n";
        assert_eq!(lines(text).collect::<Vec<_>>(), [(3, "File::create(\"x\");")]);
    }
}
