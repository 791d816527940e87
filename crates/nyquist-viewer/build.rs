//! Lists the files of the page, so that a new file is included without being named in the code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    list("assets", "files.rs")?;
    list("offline", "offline.rs")?;
    list("third_party", "third_party.rs")
}

/// The kinds of files that are sent to the page. Licences and types of code of others are beside it.
const SENT: [&str; 4] = ["css", "html", "js", "svg"];

/// Writes a table of the files of a folder.
fn list(folder: &str, table_name: &str) -> io::Result<()> {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in &files {
        let name = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let _ = writeln!(table, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join(table_name), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|kind| SENT.iter().any(|sent| kind == *sent)) {
            files.push(path);
        }
    }
    Ok(())
}
