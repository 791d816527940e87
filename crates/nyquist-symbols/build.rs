//! Hashes this crate's sources. Cached answers of other versions of the sources are not used, because they
//! could differ.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut files = BTreeSet::new();
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        list(&folder, &mut folders, &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=NYQUIST_SYMBOLS_SOURCES={:016x}", hasher.finish());
    Ok(())
}

fn list(folder: &Path, folders: &mut Vec<PathBuf>, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        } else {
            files.insert(entry.path());
        }
    }
    Ok(())
}
