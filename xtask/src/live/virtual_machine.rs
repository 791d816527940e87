//! A virtual machine with 64-bit ARM processors. It runs a script as root, and returns the files that the
//! script has written.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::context::Context;
use super::expect::{Stop, skip};
use crate::arm::{self, Parts};
use crate::packages;

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

/// A machine before it runs.
pub(super) struct VirtualMachine<'a> {
    test: &'a Context<'a>,
    parts: &'static Parts,
    /// Files with their paths in the machine.
    files: Vec<(PathBuf, String)>,
    /// Options for the emulator.
    options: Vec<&'static str>,
}

/// The files that a machine has written.
pub(super) struct Left {
    folder: PathBuf,
}

impl<'a> VirtualMachine<'a> {
    /// A machine with nyquist and a shell. The first call builds or downloads everything that it needs.
    pub(super) fn new(test: &'a Context<'a>) -> Result<Self, Stop> {
        static LACKING: OnceLock<Vec<&'static str>> = OnceLock::new();
        static PARTS: OnceLock<Result<Parts, String>> = OnceLock::new();
        let lacking = LACKING.get_or_init(packages::install_arm);
        if !lacking.is_empty() {
            return skip(format_args!("a virtual machine needs Debian's {}", lacking.join(", ")));
        }
        let parts = PARTS.get_or_init(|| arm::parts().map_err(|error| format!("{error:#}")));
        let parts = parts.as_ref().map_err(|error| Stop::Failed(error.clone()))?;
        let files = vec![
            (parts.busybox.clone(), "bin/busybox".to_owned()),
            (parts.nyquist.clone(), "bin/nyquist".to_owned()),
        ];
        Ok(Self { test, parts, files, options: Vec::new() })
    }

    /// Adds a workload that is built with these flags.
    pub(super) fn with_workload(mut self, name: &str, flags: &[&str]) -> Result<Self> {
        let built = self.test.fresh(name);
        arm::build_workload(name, &[flags, &["-static"]].concat(), &built)?;
        self.files.push((built, format!("bin/{name}")));
        Ok(self)
    }

    /// Adds options for the emulator.
    pub(super) fn with_options(mut self, options: &[&'static str]) -> Self {
        self.options.extend(options);
        self
    }

    /// Runs a script in the machine. The script must succeed.
    pub(super) fn run(self, script: &str) -> Result<Left> {
        let (archive, port) = (self.test.fresh("initrd"), self.test.fresh("out.tar"));
        self.write_files(&archive, script)?;
        let folder = self.test.fresh("out");
        fs::create_dir_all(&folder)?;
        let emulator = self.test.program("qemu-system-aarch64");
        let emulator = emulator.args(&["-M", "virt", "-cpu", "max", "-m", "2G", "-nographic", "-nodefaults"]);
        let emulator =
            emulator.args(&["-serial", "stdio", "-no-reboot", "-append", "console=ttyAMA0 quiet panic=-1"]);
        let emulator = emulator.args(&["-kernel"]).path(&self.parts.kernel).args(&["-initrd"]).path(&archive);
        let chardev = format!("file,id=out,path={}", port.display());
        let emulator = emulator.args(&["-device", "virtio-serial-pci", "-chardev", &chardev]);
        let emulator = emulator.args(&["-device", "virtserialport,chardev=out,name=out"]);
        let finished = emulator.args(&self.options).run()?.succeeded()?;
        self.test.program("tar").args(&["xf"]).path(&port).args(&["-C"]).path(&folder).run()?.succeeded()?;
        let left = Left { folder };
        let (status, log) = (left.text("status")?, left.text("log")?);
        ensure!(status.trim() == "0", "the script ended with {status}: {log}\n{}", finished.stdout_text());
        fs::remove_file(archive)?;
        Ok(left)
    }

    /// Writes the archive with the machine's first files.
    fn write_files(&self, archive: &Path, script: &str) -> Result<()> {
        let mut archive = Archive(BufWriter::new(File::create(archive)?), 0);
        for folder in ["bin", "dev", "etc", "out", "proc", "sys", "tmp"] {
            archive.add(folder, 0o040_755, &[])?;
        }
        for (name, mode, text) in
            [("init", 0o100_755, INIT), ("script", 0o100_644, script), ("etc/passwd", 0o100_644, USERS)]
        {
            archive.add(name, mode, text.as_bytes())?;
        }
        for (file, name) in &self.files {
            let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            archive.add(name, 0o100_000 | fs::metadata(file)?.permissions().mode() & 0o777, &bytes)?;
        }
        archive.add("TRAILER!!!", 0, &[])?;
        Ok(archive.0.flush()?)
    }
}

impl Left {
    /// The path of a file from the machine.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The text of a file from the machine.
    pub(super) fn text(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        let bytes = fs::read(&path).with_context(|| format!("the machine has left no {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Writes an archive in the kernel's format (`Documentation/driver-api/early-userspace/buffer-format.rst`,
/// "newc"), and counts its files.
struct Archive<W>(W, u32);

impl<W: Write> Archive<W> {
    fn add(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.1 += 1;
        let (size, name_size) = (u32::try_from(bytes.len())?, u32::try_from(name.len() + 1)?);
        write!(self.0, "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}", self.1, 0, 0, 1, 0)?;
        write!(self.0, "{size:08x}{:08x}{:08x}{:08x}{:08x}{name_size:08x}{:08x}", 0, 0, 0, 0, 0)?;
        self.0.write_all(name.as_bytes())?;
        // After the name and after the content, zeros fill a word of four bytes.
        self.0.write_all(&[0; 4][..padded(110 + name.len())])?;
        self.0.write_all(bytes)?;
        self.0.write_all(&[0; 3][..(4 - bytes.len() % 4) % 4])?;
        Ok(())
    }
}

/// How many zeros follow a name that ends at this offset from the header: at least one.
fn padded(end: usize) -> usize {
    4 - end % 4
}

/// The time limit of a test that may have to build its parts first.
pub(super) const LIMIT: Duration = Duration::from_mins(40);

#[cfg(test)]
mod tests {
    use super::Archive;
    use std::process::{Command, Stdio};

    /// The archive is checked with cpio, if that is installed.
    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive(Vec::new(), 0);
        archive.add("folder", 0o040_755, &[]).unwrap();
        archive.add("folder/file", 0o100_644, b"seven\n\n").unwrap();
        archive.add("TRAILER!!!", 0, &[]).unwrap();
        assert_eq!(archive.0.len() % 4, 0);
        let Ok(mut cpio) = Command::new("cpio")
            .args(["-it", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        else {
            return;
        };
        std::io::Write::write_all(&mut cpio.stdin.take().unwrap(), &archive.0).unwrap();
        let listed = cpio.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "folder\nfolder/file\n");
    }
}
