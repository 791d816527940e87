//! Paths as the kernel of Windows has them, and as users see them.

use nyquist_etw::kernel::Volume;

/// The folder of Windows, where `\SystemRoot` leads, unless it is known.
const WINDOWS: &str = r"C:\Windows\";
/// A library that every process has, in the folder of Windows.
const SYSTEM_LIBRARY: &str = r"\windows\system32\ntdll.dll";

/// The drive letters of volumes.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    known: Vec<Volume>,
    /// The volume of Windows, by the path of a library. It is called `C:` if the trace does not name it.
    system: Option<String>,
    /// The folder of Windows, with a backslash at its end.
    windows: Option<String>,
}

impl Volumes {
    /// Takes note of a volume.
    pub(super) fn add(&mut self, volume: Volume) {
        /// More than a machine can have.
        const MAX_VOLUMES: usize = 1000;
        if self.known.len() < MAX_VOLUMES && !volume.device.is_empty() {
            self.known.push(volume);
        }
    }

    /// Takes note of the folder of Windows.
    pub(super) fn set_windows_folder(&mut self, folder: &str) {
        self.windows = Some(format!(r"{}\", folder.trim_end_matches('\\')));
    }

    /// Takes note of an image's path, which may show where Windows is.
    pub(super) fn note_image(&mut self, path: &str) {
        let device = path.len().checked_sub(SYSTEM_LIBRARY.len()).and_then(|at| path.split_at_checked(at));
        if let Some((device, rest)) = device
            && self.system.is_none()
            && rest.eq_ignore_ascii_case(SYSTEM_LIBRARY)
            && device.starts_with('\\')
        {
            self.system = Some(format!("{device}\\"));
        }
    }

    /// The path as users see it. Volumes without a known letter keep the kernel's name, with the prefix by which
    /// programs can open it.
    pub(super) fn display_path(&self, path: &str) -> String {
        if let Some(rest) = without_prefix(path, r"\SystemRoot\") {
            return format!("{}{rest}", self.windows_folder());
        }
        if let Some(rest) = without_prefix(path, r"\??\") {
            return rest.to_owned();
        }
        let known = self.known.iter().find_map(|volume| {
            let rest = without_prefix(path, &volume.device)?;
            Some(format!("{}{rest}", volume.drive))
        });
        let system = || Some(format!(r"C:\{}", without_prefix(path, self.system.as_deref()?)?));
        let named = known.or_else(system);
        named.unwrap_or_else(|| match without_prefix(path, r"\Device\") {
            Some(rest) => format!(r"\\?\GLOBALROOT\Device\{rest}"),
            None if path.starts_with(r"\Windows\") => {
                format!("{}{path}", self.windows_folder().get(..2).unwrap_or_default())
            }
            None => path.to_owned(),
        })
    }

    fn windows_folder(&self) -> &str {
        self.windows.as_deref().unwrap_or(WINDOWS)
    }
}

/// The rest of a path behind a prefix, whose letters may be small or large.
fn without_prefix<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_users_see_them() {
        let mut volumes = Volumes::default();
        let volume = |device: &str, drive: &str| Volume { device: device.into(), drive: drive.into() };
        volumes.add(volume(r"\Device\HarddiskVolume3\", r"D:\"));
        let shown =
            |volumes: &Volumes, path: &str, expected: &str| assert_eq!(volumes.display_path(path), expected);
        shown(&volumes, r"\Device\harddiskVolume3\a\b.exe", r"D:\a\b.exe");
        shown(&volumes, r"\SystemRoot\system32\ntoskrnl.exe", r"C:\Windows\system32\ntoskrnl.exe");
        shown(&volumes, r"\Device\HarddiskVolume5\b.dll", r"\\?\GLOBALROOT\Device\HarddiskVolume5\b.dll");
        shown(&volumes, r"C:\b.dll", r"C:\b.dll");
        shown(&volumes, r"\??\C:\b.sys", r"C:\b.sys");
        volumes.note_image(r"\Device\HarddiskVolume5\Windows\System32\ntdll.dll");
        shown(&volumes, r"\Device\HarddiskVolume5\b.dll", r"C:\b.dll");
        volumes.set_windows_folder(r"E:\WinNT");
        shown(&volumes, r"\SystemRoot\system32\ntoskrnl.exe", r"E:\WinNT\system32\ntoskrnl.exe");
        shown(&volumes, r"\Windows\system32\ntdll.dll", r"E:\Windows\system32\ntdll.dll");
    }
}
