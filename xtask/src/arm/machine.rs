//! A virtual machine with a 64-bit ARM processor: its first files, how the emulator is called, and the files
//! that it leaves.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::Archive;
use super::{Parts, succeed};

/// The emulator.
pub(crate) const EMULATOR: &str = "qemu-system-aarch64";

/// Each instruction takes four nanoseconds. While the processor sleeps, its clock goes on to the next timer at
/// once. So no measured value depends on the load of this machine.
pub(crate) const STEADY: &[&str] = &["-icount", "shift=2,sleep=off"];
/// The same, with one nanosecond for each instruction.
pub(crate) const STEADY_AND_FAST: &[&str] = &["-icount", "shift=0,sleep=off"];

/// The first program of the machine. It runs the script, and sends the script's files through a port.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tracefs tracing /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
cd /out
sh -x /script > log 2>&1
echo $? > status
tar c . > /dev/vport0p1
poweroff -f
";

/// The users that programs look up.
const USERS: &str = "root:x:0:0:root:/tmp:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n";

/// The folders that are always there.
const FOLDERS: [&str; 7] = ["bin", "dev", "etc", "out", "proc", "sys", "tmp"];

/// A machine before it runs.
pub(crate) struct Machine {
    kernel: PathBuf,
    /// Files with their paths in the machine.
    files: Vec<(PathBuf, String)>,
    /// Options for the emulator.
    options: Vec<&'static str>,
}

impl Machine {
    /// A machine with a shell and this program as nyquist.
    pub(crate) fn new(parts: &Parts, nyquist: &Path) -> Self {
        let mut machine = Self { kernel: parts.kernel.clone(), files: Vec::new(), options: Vec::new() };
        machine.add(parts.busybox.clone(), "bin/busybox");
        machine.add(nyquist.to_owned(), "bin/nyquist");
        machine
    }

    /// Adds a file with its path in the machine.
    pub(crate) fn add(&mut self, file: PathBuf, path: impl Into<String>) {
        self.files.push((file, path.into()));
    }

    /// Adds options for the emulator.
    pub(crate) fn add_options(&mut self, options: &[&'static str]) {
        self.options.extend(options);
    }

    /// Writes the archive with the machine's first files.
    pub(crate) fn write_files(&self, archive: &Path, script: &str) -> Result<()> {
        let file = File::create(archive).with_context(|| format!("cannot create {}", archive.display()))?;
        let mut archive = Archive::new(BufWriter::new(file));
        let of_files = self.files.iter().filter_map(|(_, path)| Path::new(path).parent()?.to_str());
        for folder in FOLDERS.into_iter().chain(of_files).collect::<BTreeSet<_>>() {
            archive.add(folder, 0o040_755, &[])?;
        }
        for (name, mode, text) in
            [("init", 0o100_755, INIT), ("script", 0o100_644, script), ("etc/passwd", 0o100_644, USERS)]
        {
            archive.add(name, mode, text.as_bytes())?;
        }
        for (file, path) in &self.files {
            let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            archive.add(path, 0o100_000 | fs::metadata(file)?.permissions().mode() & 0o777, &bytes)?;
        }
        archive.finish()
    }

    /// The arguments of the emulator, for a machine that begins with `archive` and writes its files to `port`.
    pub(crate) fn arguments(&self, archive: &Path, port: &Path) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let fixed = [
            "-M virt -cpu max -m 2G -nographic -nodefaults -serial stdio -no-reboot",
            "-device virtio-serial-pci -device virtserialport,chardev=out,name=out",
        ];
        let mut arguments: Vec<String> =
            fixed.iter().flat_map(|args| args.split(' ')).map(str::to_owned).collect();
        arguments.extend(["-append".to_owned(), "console=ttyAMA0 quiet panic=-1".to_owned()]);
        arguments.extend(["-kernel".to_owned(), path(&self.kernel), "-initrd".to_owned(), path(archive)]);
        // The port's file must be known before the device that writes to it.
        let output = ["-chardev".to_owned(), format!("file,id=out,path={}", path(port))];
        arguments.splice(0..0, output);
        arguments.extend(self.options.iter().map(|&option| option.to_owned()));
        arguments
    }
}

/// The files that a machine has written.
pub(crate) struct Left {
    folder: PathBuf,
}

impl Left {
    /// Unpacks what a machine has written. Its script must have succeeded; `console` is what it has printed.
    pub(crate) fn unpack(port: &Path, folder: PathBuf, console: &str) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        succeed(Command::new("tar").arg("xf").arg(port).arg("-C").arg(&folder))?;
        let left = Self { folder };
        let (status, log) = (left.text("status")?, left.text("log")?);
        ensure!(status.trim() == "0", "the script ended with {status}: {log}\n{console}");
        Ok(left)
    }

    /// The path of a file from the machine.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The text of a file from the machine.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        let bytes = fs::read(&path).with_context(|| format!("the machine has left no {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
