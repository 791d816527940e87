//! Archives of files in the format that the kernel reads its first files from.

use std::io::Write;

use anyhow::Result;

/// Writes an archive in the kernel's format (`Documentation/driver-api/early-userspace/buffer-format.rst`,
/// "newc"), and counts its files.
pub(super) struct Archive<W> {
    to: W,
    files: u32,
}

impl<W: Write> Archive<W> {
    /// An empty archive.
    pub(super) fn new(to: W) -> Self {
        Self { to, files: 0 }
    }

    /// Adds a file, or a folder, by its mode.
    pub(super) fn add(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.files += 1;
        let (size, name_size) = (u32::try_from(bytes.len())?, u32::try_from(name.len() + 1)?);
        write!(self.to, "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}", self.files, 0, 0, 1, 0)?;
        write!(self.to, "{size:08x}{:08x}{:08x}{:08x}{:08x}{name_size:08x}{:08x}", 0, 0, 0, 0, 0)?;
        self.to.write_all(name.as_bytes())?;
        // After the name and after the content, zeros fill a word of four bytes.
        self.to.write_all(&[0; 4][..padded(110 + name.len())])?;
        self.to.write_all(bytes)?;
        self.to.write_all(&[0; 3][..(4 - bytes.len() % 4) % 4])?;
        Ok(())
    }

    /// Writes the end of the archive.
    pub(super) fn finish(mut self) -> Result<()> {
        self.add("TRAILER!!!", 0, &[])?;
        Ok(self.to.flush()?)
    }
}

/// How many zeros follow a name that ends at this offset from the header: at least one.
fn padded(end: usize) -> usize {
    4 - end % 4
}

#[cfg(test)]
mod tests {
    use super::Archive;
    use std::process::{Command, Stdio};

    /// The archive is checked with cpio, if that is installed.
    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive::new(Vec::new());
        archive.add("folder", 0o040_755, &[]).unwrap();
        archive.add("folder/file", 0o100_644, b"seven\n\n").unwrap();
        archive.add("TRAILER!!!", 0, &[]).unwrap();
        assert_eq!(archive.to.len() % 4, 0);
        let Ok(mut cpio) = Command::new("cpio")
            .args(["-it", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        else {
            return;
        };
        std::io::Write::write_all(&mut cpio.stdin.take().unwrap(), &archive.to).unwrap();
        let listed = cpio.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "folder\nfolder/file\n");
    }
}
