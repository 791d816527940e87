//! Names that nothing has yet, for new files and folders.

use std::hash::{BuildHasher as _, RandomState};
use std::io;

/// The number of attempts to find an unused name.
const MAX_ATTEMPTS: u32 = 16;

/// Calls `create` with random numbers, until it creates something under a name with such a number that nothing has.
///
/// # Errors
/// Those of `create`. If it fails with [`AlreadyExists`](io::ErrorKind::AlreadyExists), it is called again, up to 16
/// times in all.
pub fn with_unused_name<T>(mut create: impl FnMut(u64) -> io::Result<T>) -> io::Result<T> {
    for attempt in 0..MAX_ATTEMPTS {
        match create(RandomState::new().hash_one(attempt)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn other_numbers_follow_until_a_name_is_unused() {
        let mut tried = BTreeSet::new();
        let created = with_unused_name(|number| {
            assert!(tried.insert(number), "{number} again");
            if tried.len() < 3 { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok("created") }
        });
        assert_eq!((created.unwrap(), tried.len()), ("created", 3));
    }

    #[test]
    fn the_search_for_an_unused_name_ends() {
        let mut calls = 0;
        let result: io::Result<()> = with_unused_name(|_| {
            calls += 1;
            Err(io::ErrorKind::AlreadyExists.into())
        });
        assert_eq!((result.unwrap_err().kind(), calls), (io::ErrorKind::AlreadyExists, MAX_ATTEMPTS));
    }

    #[test]
    fn another_error_ends_the_search() {
        let mut calls = 0;
        let result: io::Result<()> = with_unused_name(|_| {
            calls += 1;
            Err(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!((result.unwrap_err().kind(), calls), (io::ErrorKind::PermissionDenied, 1));
    }
}
