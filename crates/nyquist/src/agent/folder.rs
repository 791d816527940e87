//! The folder in which each profile is a Parquet file, by date and host.

use crate::failure::Failure;
#[cfg(feature = "parquet")]
#[cfg(feature = "parquet")]
use crate::output::{Output, create_folders};
#[cfg(feature = "parquet")]
use crate::source_paths::DiskPaths;
#[cfg(any(feature = "parquet", test))]
use crate::utc_date::{date_text, time_text};
use nyquist_formats::ProcessLabels;
#[cfg(feature = "parquet")]
use nyquist_formats::parquet;
use nyquist_profile::Profile;
use std::path::Path;
#[cfg(any(feature = "parquet", test))]
use std::path::PathBuf;

/// Writes a profile. The file appears when it is complete.
#[cfg(feature = "parquet")]
pub(super) fn write(
    folder: &Path,
    host: &str,
    profile: &Profile,
    labels: &[ProcessLabels],
) -> Result<(), Failure> {
    let path = place(folder, host, profile.meta().start_time / 1000);
    let parent = path.parent().unwrap_or(folder);
    create_folders(parent).map_err(|refused| refused.failure(parent, "--to"))?;
    let output = Output::open(&path).map_err(|refused| refused.failure(&path, "--to"))?;
    let disk_paths = DiskPaths::of_user();
    let options = parquet::WriteOptions {
        paths: &|file| disk_paths.path(file),
        slice: None,
        labels: &|process| labels[process.index()].clone(),
    };
    let saved = output.save(|mut out| parquet::write(profile, options, &mut out));
    saved.map(drop).map_err(|error| Failure::io(format_args!("cannot write {}", path.display()), &error))
}

/// This build has no tables.
#[cfg(not(feature = "parquet"))]
pub(super) fn write(_: &Path, _: &str, _: &Profile, _: &[ProcessLabels]) -> Result<(), Failure> {
    Err(Failure::new("this build writes no Parquet files: it was made without the feature `parquet`"))
}

/// `date=2026-01-31/host=web1/120000000-77.parquet`: the time at which it begins, to a millisecond, and the id of this
/// process.
#[cfg(any(feature = "parquet", test))]
fn place(folder: &Path, host: &str, milliseconds: u64) -> PathBuf {
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' => character,
        _ => '_',
    };
    let host: String = host.chars().map(plain).collect();
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    let name = format!("{}{rest:03}-{}.parquet", time_text(seconds), std::process::id());
    folder.join(format!("date={}", date_text(seconds))).join(format!("host={host}")).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_by_date_and_host() {
        let place = place(Path::new("p"), "we/b=1", 1_767_225_599_007);
        let name = format!("p/date=2025-12-31/host=we_b_1/235959007-{}.parquet", std::process::id());
        assert_eq!(place, Path::new(&name));
    }
}
