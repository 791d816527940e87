//! A folder of Parquet tables: the profiles of one machine, which are read as one.

use nyquist_formats::parquet::TableReader;
use nyquist_formats::{ImportedProfile, ReadError};
use nyquist_system::open_regular_unlinked;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::options::ReadOptions;

/// Folders in folders: by date, by host, and above these.
const MAX_DEPTH: usize = 5;
/// The most entries of all folders.
const MAX_ENTRIES: usize = 200_000;
/// The most bytes of all files. SQL engines read more.
const MAX_BYTES: u64 = 1 << 30;

/// The prefix of a folder with the profiles of one host.
const HOST: &str = "host=";

/// The tables in a folder and in its folders by date and host (`KEY=VALUE`), which may be of one host only. Links are
/// not followed, and hidden files are not read, because they are not complete.
///
/// # Errors
/// [`io::ErrorKind::IsADirectory`] if there is no table; otherwise why they are not read here.
pub(crate) fn find(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut tables, mut folders, mut entries) = (Vec::new(), vec![(folder.to_owned(), 0)], 0);
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(io::Error::other("it has too many files to read them all: SQL engines do"));
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_partition = entry.file_name().to_string_lossy().contains('=');
            if kind.is_dir() && depth < MAX_DEPTH && is_partition && !is_hidden {
                folders.push((path, depth + 1));
            } else if kind.is_file() && !is_hidden && path.extension().is_some_and(|it| it == "parquet") {
                tables.push(path);
            }
        }
    }
    tables.sort();
    if tables.is_empty() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    check_hosts(&tables)?;
    Ok(tables)
}

/// Fails if the tables are of several hosts. Processes of two machines can have one id.
fn check_hosts(tables: &[PathBuf]) -> io::Result<()> {
    let names =
        tables.iter().flat_map(|path| path.components()).map(|part| part.as_os_str().to_string_lossy());
    let hosts: BTreeSet<_> = names.filter(|name| name.starts_with(HOST)).collect();
    match hosts.first() {
        Some(first) if hosts.len() > 1 => Err(io::Error::other(format!(
            "it has the profiles of {} hosts: name the folder of one, such as …/{first}, or ask an SQL engine",
            hosts.len()
        ))),
        _ => Ok(()),
    }
}

/// The profile of all tables.
///
/// # Errors
/// One of them cannot be read, or they have more bytes together than are read here.
pub(crate) fn read(
    tables: &[PathBuf],
    kind: Option<&str>,
    options: &ReadOptions<'_>,
) -> Result<ImportedProfile, ReadError> {
    let mut reader = TableReader::new();
    let mut left = MAX_BYTES;
    for path in tables {
        let mut bytes = Vec::new();
        let file = open_regular_unlinked(path).map_err(ReadError::Read)?;
        let length = file.take(left + 1).read_to_end(&mut bytes).map_err(ReadError::Read)?;
        left = left.checked_sub(length as u64).ok_or_else(too_large)?;
        reader.add(bytes)?;
    }
    reader.read(kind, &options.labels)
}

fn too_large() -> ReadError {
    ReadError::Read(io::Error::other("its tables have more than 1 GiB: SQL engines read them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_one_host_are_found() {
        let folder = std::env::temp_dir().join(format!("nyquist-tables-{}", std::process::id()));
        let make = |path: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "PAR1").unwrap();
        };
        make("notes.txt");
        assert_eq!(find(&folder).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for path in
            ["date=2026-01-01/host=a/1.parquet", "date=2026-01-02/host=a/2.parquet", ".hidden/3.parquet"]
        {
            make(path);
        }
        make("date=2026-01-02/host=a/.4.parquet");
        make("other/5.parquet");
        assert_eq!(find(&folder).unwrap().len(), 2);
        make("date=2026-01-02/host=b/1.parquet");
        let error = find(&folder).unwrap_err().to_string();
        assert!(error.contains("2 hosts") && error.contains("host=a"), "{error}");
        assert_eq!(find(&folder.join("date=2026-01-01")).unwrap().len(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
