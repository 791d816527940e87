//! The countable events of this machine: its counting units from sysfs, and its tracepoints from tracefs.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::probed_file::ProbedFile;
use crate::linux::sys::tracefs::mount_detached;

/// The folder of the kernel's counting units.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// The mount points of the kernel's tracing; the second is the older one.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What permits to read a tracefs that is mounted.
const READABLE_TRACEFS: &str = "tracepoints take root, or a tracefs that you may read (`sudo mount -o remount,mode=755 /sys/kernel/tracing`)";
/// What mounts it. As root it is not needed: the recorder mounts it for itself.
const MOUNTED_TRACEFS: &str =
    "mount it (`sudo mount -t tracefs tracefs /sys/kernel/tracing`), or record with sudo";

/// Why tracepoints of a tracefs that is mounted cannot be read.
pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "you may not read the kernel's tracepoints".to_owned(),
        _ => format!("the kernel's tracepoints cannot be read: {error}"),
    }
}

/// What would permit to read tracepoints.
pub(super) fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::NotFound { MOUNTED_TRACEFS } else { READABLE_TRACEFS }
}

/// The folder of a tracefs that is mounted for this process alone, if it may do so.
fn detached() -> Option<PathBuf> {
    static MOUNT: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let mount = MOUNT.get_or_init(|| mount_detached().ok()).as_ref()?;
    // Paths through the descriptor lead into the mount, which has no path of its own.
    Some(PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())))
}

/// The folders that describe the events.
#[derive(Clone, Debug)]
pub struct EventSources {
    devices: PathBuf,
    tracing: Option<PathBuf>,
    /// The most memory for what is read of the file of a probe, in bytes.
    memory: u64,
}

/// An event that a counting unit has a name for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitEvent {
    /// The counting unit.
    pub unit: String,
    /// The event's name in it.
    pub name: String,
    /// The terms of its definition, such as `event=0x3c`.
    pub terms: String,
}

impl EventSources {
    /// The sources of this machine.
    pub fn of_machine() -> Self {
        let mut folders = TRACING.iter().map(PathBuf::from);
        let mounted = folders.find(|folder| folder.join("events").is_dir());
        // If the folder is not accessible, `is_dir` returns false. The first error then contains the reason.
        let any = || TRACING.iter().map(PathBuf::from).find(|folder| folder.exists());
        let tracing = mounted.or_else(detached).or_else(any);
        Self::in_folders(DEVICES.into(), tracing)
    }

    /// Why tracepoints cannot be read, and what would permit it. `None` if they can be read.
    pub fn lack_of_tracepoints(&self) -> Option<(String, &'static str)> {
        let error = self.tracepoint_groups().err()?;
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "tracefs is not mounted".to_owned(),
            _ => unreadable(&error),
        };
        Some((reason, advice(&error)))
    }

    /// The sources in folders that look like the kernel's.
    pub fn in_folders(devices: PathBuf, tracing: Option<PathBuf>) -> Self {
        Self { devices, tracing, memory: u64::MAX }
    }

    /// The same sources. What is read of the file of a probe takes at most this many bytes, besides the limit
    /// that always holds.
    #[must_use]
    pub fn within_memory(self, bytes: u64) -> Self {
        Self { memory: bytes, ..self }
    }

    /// The file of a probe, within the memory for it.
    pub(super) fn limited(&self, file: ProbedFile) -> ProbedFile {
        file.within(self.memory)
    }

    /// The names of all counting units.
    pub fn units(&self) -> Vec<String> {
        names_in(&self.devices).unwrap_or_default()
    }

    /// The counting units that a name refers to: the one with that name, or those with a number after it
    /// (`uncore_imc` for `uncore_imc_0` and `uncore_imc_1`).
    pub(super) fn units_named(&self, name: &str) -> Vec<String> {
        let units = self.units();
        if units.iter().any(|unit| unit == name) {
            return vec![name.to_owned()];
        }
        let is_numbered = |unit: &String| {
            let number = unit.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
            number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        units.into_iter().filter(is_numbered).collect()
    }

    /// A file of a counting unit, without the trailing newline. `None` if it does not exist.
    pub(super) fn unit_file(&self, unit: &str, file: &str) -> Option<String> {
        let is_inside = |part: &str| !part.is_empty() && part != ".." && part != ".";
        if !is_inside(unit) || unit.contains('/') || !file.split('/').all(is_inside) {
            return None;
        }
        let text = fs::read_to_string(self.devices.join(unit).join(file)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The value of `perf_event_attr.type` for a counting unit.
    pub fn unit_kind(&self, unit: &str) -> Option<u32> {
        self.unit_file(unit, "type")?.parse().ok()
    }

    /// The names of files in a folder of a counting unit.
    pub(super) fn unit_names(&self, unit: &str, folder: &str) -> Vec<String> {
        names_in(&self.devices.join(unit).join(folder)).unwrap_or_default()
    }

    /// The events that a counting unit has names for.
    pub fn unit_events(&self, unit: &str) -> Vec<UnitEvent> {
        let names = self.unit_names(unit, "events").into_iter();
        let is_event = |name: &String| {
            let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
            !["scale", "unit", "per-pkg", "snapshot"].contains(&extension)
        };
        let event = |name: String| UnitEvent {
            terms: self.unit_file(unit, &format!("events/{name}")).unwrap_or_default(),
            unit: unit.to_owned(),
            name,
        };
        names.filter(is_event).map(event).collect()
    }

    /// The units of the CPU cores: one, or one for each kind of core if there are several kinds. None in most
    /// virtual machines.
    pub fn core_units(&self) -> Vec<String> {
        let of_cores = |unit: &String| {
            unit == "cpu"
                || unit.starts_with("cpu_")
                || unit.starts_with("armv")
                || unit.starts_with("apple_")
        };
        self.units().into_iter().filter(of_cores).collect()
    }

    /// The groups of tracepoints (`sched`, `syscalls`, ...). `Err` if this process may not read them, or
    /// there are none.
    pub fn tracepoint_groups(&self) -> io::Result<Vec<String>> {
        folders_in(&self.events()?)
    }

    /// The tracepoints of a group.
    pub fn tracepoints(&self, group: &str) -> io::Result<Vec<String>> {
        folders_in(&self.events()?.join(checked(group)?))
    }

    /// The value of `perf_event_attr.config` for a tracepoint.
    pub fn tracepoint_id(&self, group: &str, name: &str) -> io::Result<u64> {
        let text = self.tracepoint_file(group, name, "id")?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its id is not a number"))
    }

    /// A file that describes a tracepoint: `id`, `format`.
    pub(crate) fn tracepoint_file(&self, group: &str, name: &str, file: &str) -> io::Result<String> {
        fs::read_to_string(self.events()?.join(checked(group)?).join(checked(name)?).join(file))
    }

    /// The group and the name of the tracepoint with a number: those in an event's name, or else of any
    /// tracepoint with that number.
    pub(crate) fn tracepoint_of_id(&self, event: &str, id: u64) -> Option<(String, String)> {
        let mut words = event.split(':');
        let (group, name) = (words.next()?, words.next().unwrap_or_default());
        if self.tracepoint_id(group, name).ok() == Some(id) {
            return Some((group.to_owned(), name.to_owned()));
        }
        let groups = self.tracepoint_groups().ok()?;
        groups.into_iter().find_map(|group| {
            let names = self.tracepoints(&group).ok()?;
            let name = names.into_iter().find(|name| self.tracepoint_id(&group, name).ok() == Some(id))?;
            Some((group, name))
        })
    }

    fn events(&self) -> io::Result<PathBuf> {
        let tracing = self.tracing.as_ref().map(|folder| folder.join("events"));
        tracing.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted"))
    }
}

/// Checks that a name is a single path component.
fn checked(name: &str) -> io::Result<&str> {
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if is_plain { Ok(name) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The folders in a folder, by name.
fn folders_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}
