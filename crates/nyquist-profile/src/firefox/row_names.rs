//! The names of threads' rows in the front end. If threads of a process have the same name, their ids are
//! appended.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::profile::Profile;

/// The names of the rows of all threads. A main thread's row is that of the process, which shows the pid.
/// O(threads).
pub(super) fn row_names(profile: &Profile) -> Vec<Cow<'_, str>> {
    let mut counts: FxHashMap<_, u32> = FxHashMap::default();
    for thread in profile.threads() {
        *counts.entry((thread.process, thread.name.as_str())).or_default() += 1;
    }
    let names = profile.threads().iter().map(|thread| {
        let same = counts.get(&(thread.process, thread.name.as_str()));
        if thread.is_main || same.is_none_or(|&count| count < 2) {
            return Cow::Borrowed(thread.name.as_str());
        }
        Cow::Owned(format!("{} {}", thread.name, thread.tid).trim_start().to_owned())
    });
    names.collect()
}
