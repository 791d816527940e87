//! perf for 64-bit ARM with its libraries, from Debian's packages. They are unpacked and not installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::apt::Apt;
use super::{output, succeed};

/// Downloads and unpacks what is missing in this folder. Returns the files, with their paths in a machine.
pub(crate) fn files(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let unpacked = folder.join("perf");
    if !unpacked.join("complete").exists() {
        get(folder, &unpacked)?;
    }
    let program = unpacked.join("usr/bin/perf");
    let mut libraries = BTreeMap::new();
    find_libraries(&unpacked, &mut libraries)?;
    let mut files = vec![(program.clone(), "bin/perf".to_owned())];
    let mut names = needed(&program)?;
    // The dynamic linker is named in another place than the libraries.
    names.push("ld-linux-aarch64.so.1".to_owned());
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        let library = libraries.get(&name).with_context(|| format!("perf's packages have no {name}"))?;
        let further = needed(library)?;
        names.extend(further.into_iter().filter(|further| !names.contains(further)).collect::<Vec<_>>());
        files.push((library.clone(), format!("lib/{name}")));
    }
    Ok(files)
}

/// Downloads perf's package and all that it depends on.
fn get(folder: &Path, unpacked: &Path) -> Result<()> {
    let apt = Apt::new(&folder.join("with-perf"))?;
    succeed(&mut apt.command("apt-get", &["update", "-qq"]))?;
    let download = ["install", "-qq", "-y", "--no-install-recommends", "--download-only", "linux-perf"];
    // Nothing is installed, so other users of apt are not waited for.
    succeed(&mut apt.command("apt-get", &[&["-o", "Debug::NoLocking=1"], &download[..]].concat()))?;
    drop(fs::remove_dir_all(unpacked));
    fs::create_dir_all(unpacked)?;
    for entry in fs::read_dir(apt.folder.join("cache/archives"))?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            succeed(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(unpacked))?;
        }
    }
    fs::write(unpacked.join("complete"), "")?;
    Ok(())
}

/// Finds the libraries in a folder by the names that programs need. A name is often a link within the folder.
fn find_libraries(folder: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type()?.is_dir() {
            find_libraries(&path, found)?;
        } else if name.contains(".so")
            && let Ok(file) = fs::canonicalize(&path)
        {
            found.insert(name, file);
        }
    }
    Ok(())
}

/// The names of the libraries that a file needs (`DT_NEEDED`), by readelf.
fn needed(file: &Path) -> Result<Vec<String>> {
    let text = output(Command::new("aarch64-linux-gnu-readelf").arg("-d").arg(file))?;
    Ok(names_in(&text))
}

fn names_in(dynamic: &str) -> Vec<String> {
    let lines = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn needed_libraries_are_read_from_readelfs_lines() {
        let text =
            " 0x01 (NEEDED)             Shared library: [libm.so.6]\n 0x0e (SONAME) Library soname: [x]\n";
        assert_eq!(names_in(text), ["libm.so.6"]);
    }
}
