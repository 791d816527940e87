//! The folder in which each profile is a Parquet file, by date and host.

use crate::failure::Failure;
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

/// The longest name of a host or an event in a path.
#[cfg(any(feature = "parquet", test))]
const MAX_NAME: usize = 100;

/// The folder of `--to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folder<'a> {
    pub(super) path: &'a Path,
    pub(super) host: &'a str,
    /// The size at which a file ends.
    pub(super) max_file_size: u64,
}

impl Folder<'_> {
    /// Writes a profile, as several files if it is large. Each appears when it is complete. Returns their number.
    #[cfg(feature = "parquet")]
    pub(super) fn write(self, profile: &Profile, labels: &[ProcessLabels]) -> Result<u64, Failure> {
        let disk_paths = DiskPaths::of_user();
        let options = parquet::WriteOptions {
            paths: &|file| disk_paths.path(file),
            slice: None,
            labels: &|process| labels[process.index()].clone(),
        };
        let mut writer = parquet::TableWriter::new(profile, options);
        let mut files = 0;
        while !writer.is_complete() {
            let path = self.place(profile, files);
            let parent = path.parent().unwrap_or(self.path);
            create_folders(parent).map_err(|refused| refused.failure(parent, "--to"))?;
            let output = Output::open(&path).map_err(|refused| refused.failure(&path, "--to"))?;
            let saved = output.save(|mut out| writer.write_file(self.max_file_size, &mut out));
            saved.map_err(|error| Failure::io(format_args!("cannot write {}", path.display()), &error))?;
            files += 1;
        }
        Ok(files)
    }

    /// This build has no tables.
    #[cfg(not(feature = "parquet"))]
    pub(super) fn write(self, _: &Profile, _: &[ProcessLabels]) -> Result<u64, Failure> {
        Err(Failure::new("this build writes no Parquet files: it was made without the feature `parquet`"))
    }

    /// `date=2026-01-31/host=web1/120000000-77.parquet`: the time at which it begins, to a millisecond, and the id of
    /// this process. Behind it stand the event, if the values are one's, and the number of a file that is not the
    /// first.
    #[cfg(any(feature = "parquet", test))]
    fn place(self, profile: &Profile, number: u64) -> PathBuf {
        let meta = profile.meta();
        let (seconds, rest) = (meta.start_time / 1_000_000, meta.start_time / 1000 % 1000);
        let mut name = format!("{}{rest:03}-{}", time_text(seconds), std::process::id());
        if !meta.measure.is_cpu_time() {
            name = format!("{name}-{}", plain(&meta.measure.name));
        }
        if number > 0 {
            name = format!("{name}.{number}");
        }
        let host = format!("host={}", plain(self.host));
        self.path.join(format!("date={}", date_text(seconds))).join(host).join(name + ".parquet")
    }
}

/// A text as a part of a path: letters, digits, and three other characters.
#[cfg(any(feature = "parquet", test))]
fn plain(text: &str) -> String {
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' => character,
        _ => '_',
    };
    text.chars().take(MAX_NAME).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Measure, Meta, ProfileBuilder, Unit};

    #[test]
    fn files_are_by_date_and_host() {
        let folder = Folder { path: Path::new("p"), host: "we/b=1", max_file_size: 1 };
        let place = |measure: Measure, number| {
            let meta = Meta { start_time: 1_767_225_599_007_000, measure, ..Meta::default() };
            folder.place(&ProfileBuilder::new(meta).finish(), number).display().to_string()
        };
        let expected = |end: &str| {
            format!("p/date=2025-12-31/host=we_b_1/235959007-{}{end}.parquet", std::process::id())
        };
        assert_eq!(place(Measure::default(), 0), expected(""));
        assert_eq!(place(Measure::default(), 2), expected(".2"));
        let event = Measure { name: "sched:a/b".to_owned(), unit: Unit::Count };
        assert_eq!(place(event, 0), expected("-sched_a_b"));
    }
}
