//! The addresses at which the running kernel has loaded the sections of a module.

use nyquist_object::Svma;
use rustc_hash::FxHashMap;
use std::fs;
use std::path::Path;

/// The address of each section of a module, by its name.
pub(super) type SectionAddresses = FxHashMap<String, Svma>;

/// The addresses at which the kernel has loaded each section with `part` in its name. Each section has a file
/// with its address. It is zero for users without the permission.
pub(super) fn sections(folder: &Path, part: &str) -> SectionAddresses {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let section = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.contains(part))?;
        let text = fs::read_to_string(entry.path()).ok()?;
        let address = u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()?;
        (address != 0).then_some((name, Svma(address)))
    };
    entries.filter_map(section).collect()
}
