//! Times of files as numbers.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

/// When a file's contents were changed last: seconds since 1970, and the nanoseconds after these. 0 where the
/// file system does not know.
pub fn modified(metadata: &Metadata) -> (i64, u32) {
    let Ok(time) = metadata.modified() else { return (0, 0) };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let nanoseconds = (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000;
            (-(before.as_secs() as i64) - i64::from(nanoseconds > 0), nanoseconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, UNIX_EPOCH};

    use super::modified;

    #[test]
    fn times_before_1970_have_negative_seconds() {
        let path = std::env::temp_dir().join(format!("nyquist-time-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let at = |time| {
            file.set_modified(time).unwrap();
            modified(&file.metadata().unwrap())
        };
        assert_eq!(at(UNIX_EPOCH + Duration::from_millis(1500)), (1, 500_000_000));
        assert_eq!(at(UNIX_EPOCH - Duration::from_millis(1500)), (-2, 500_000_000));
        assert_eq!(at(UNIX_EPOCH - Duration::from_secs(3)), (-3, 0));
        std::fs::remove_file(&path).unwrap();
    }
}
