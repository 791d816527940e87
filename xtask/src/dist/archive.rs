//! Archives of files: the same files and time always give the same bytes.

use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::files::Files;

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// A tar archive, compressed by gzip. Its files belong to nobody in particular.
pub(super) fn tar_gz(files: &Files, time: u64) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (path, file) in files.iter() {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(file.mode);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(file.bytes.len() as u64);
        archive
            .append_data(&mut header, path, file.bytes.as_slice())
            .with_context(|| format!("cannot pack {path}"))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// A zip archive.
pub(super) fn zip(files: &Files, time: u64) -> Result<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let time = zip_time(time)?;
    for (path, file) in files.iter() {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(time)
            .unix_permissions(file.mode);
        archive.start_file(path, options).with_context(|| format!("cannot pack {path}"))?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// One file, compressed by gzip without name and time.
pub(super) fn gz(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Unpacks an archive of either kind into a folder.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let bytes = std::fs::read(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    if archive.extension().is_some_and(|ending| ending == "zip") {
        zip::ZipArchive::new(Cursor::new(bytes))?.extract(folder)?;
    } else {
        tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice())).unpack(folder)?;
    }
    Ok(())
}

/// A time as zip archives have it, in UTC. They know none before 1980.
fn zip_time(time: u64) -> Result<zip::DateTime> {
    let (mut days, second) = (time / DAY, time % DAY);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    zip::DateTime::from_date_and_time(
        year as u16,
        month as u8 + 1,
        days as u8 + 1,
        hour as u8,
        minute as u8,
        (second % 60) as u8,
    )
    .map_err(|_| anyhow::anyhow!("zip archives have no files of the year {year}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn files(names: &[&str]) -> Files {
        let mut files = Files::default();
        for name in names {
            files.add(*name, name.as_bytes());
        }
        files.add_program("top/nyquist", b"program".to_vec());
        files
    }

    #[test]
    fn the_order_of_files_does_not_change_the_bytes() {
        let (one, other) = (files(&["top/a", "top/b/c"]), files(&["top/b/c", "top/a"]));
        assert_eq!(tar_gz(&one, 1_700_000_000).unwrap(), tar_gz(&other, 1_700_000_000).unwrap());
        assert_eq!(zip(&one, 1_700_000_000).unwrap(), zip(&other, 1_700_000_000).unwrap());
        assert_ne!(tar_gz(&one, 1_700_000_000).unwrap(), tar_gz(&one, 1_700_000_001).unwrap());
    }

    #[test]
    fn a_tar_archive_has_sorted_files_of_nobody() {
        let packed = tar_gz(&files(&["top/z", "top/a"]), 1_700_000_000).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_700_000_000));
            assert_eq!(header.username().unwrap(), Some(""));
            seen.push((entry.path().unwrap().display().to_string(), header.mode().unwrap(), text));
        }
        let file = |path: &str, mode, text: &str| (path.to_owned(), mode, text.to_owned());
        assert_eq!(
            seen,
            [
                file("top/a", 0o644, "top/a"),
                file("top/nyquist", 0o755, "program"),
                file("top/z", 0o644, "top/z")
            ]
        );
    }

    #[test]
    fn a_zip_archive_has_the_time_in_utc() {
        let packed = zip(&files(&[]), 1_709_210_096).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(packed)).unwrap();
        let file = archive.by_name("top/nyquist").unwrap();
        assert_eq!(file.last_modified().unwrap().to_string(), "2024-02-29 12:34:56");
        assert_eq!(file.unix_mode().unwrap() & 0o777, 0o755);
        assert!(zip(&files(&[]), 0).is_err());
    }
}
