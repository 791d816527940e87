//! The volumes of this machine with their drive letters, and the folder of Windows.

use std::path::PathBuf;

use nyquist_etw::kernel::Volume;
use windows_sys::Win32::Storage::FileSystem::QueryDosDeviceW;
use windows_sys::Win32::System::SystemInformation::GetSystemWindowsDirectoryW;

use super::text;
use crate::etw::volume;

/// The longest path that a drive letter leads to, and that of the folder of Windows, in UTF-16 units. Longer ones
/// are of no volume.
const MAX_PATH_LEN: usize = 1 << 12;

/// The volumes that have drive letters.
pub(crate) fn all() -> Vec<Volume> {
    ('A'..='Z').filter_map(|letter| volume(letter, &target(letter)?)).collect()
}

/// Where a drive letter leads.
fn target(letter: char) -> Option<String> {
    let name = [u16::try_from(u32::from(letter)).ok()?, u16::from(b':'), 0];
    let mut units = vec![0; MAX_PATH_LEN];
    // SAFETY: the name ends with a zero, and `units` has that many units; both live through the call.
    let len = unsafe { QueryDosDeviceW(name.as_ptr(), units.as_mut_ptr(), MAX_PATH_LEN as u32) };
    // The current target is the first of several texts, each of which ends with a zero.
    (len > 0).then(|| text(&units))
}

/// The folder of Windows, where `\SystemRoot` leads.
pub(crate) fn windows_folder() -> Option<PathBuf> {
    let mut units = vec![0; MAX_PATH_LEN];
    // SAFETY: `units` has that many units and lives through the call.
    let len = unsafe { GetSystemWindowsDirectoryW(units.as_mut_ptr(), MAX_PATH_LEN as u32) } as usize;
    (0 < len && len < MAX_PATH_LEN).then(|| PathBuf::from(text(&units)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_the_windows_folder_are_known() {
        let folder = windows_folder().unwrap();
        assert!(folder.join("system32").is_dir(), "{}", folder.display());
        let drive = folder.to_str().unwrap().get(..3).unwrap().to_owned();
        let volumes = all();
        let found = volumes.iter().find(|volume| volume.drive.eq_ignore_ascii_case(&drive));
        assert!(found.is_some_and(|volume| volume.device.starts_with(r"\Device\")), "{volumes:?}");
    }
}
