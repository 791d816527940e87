//! Jitdumps for tests.

use crate::event::{MappedFile, Mapping, Pid};
use crate::jit::dump::Dump;
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::modules::jitdump;
use crate::modules::store::ModuleStore;
use nyquist_object::{Avma, FileOffset};
use nyquist_perf::Budget;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A jitdump that is removed at the end of the test.
pub(crate) struct TestDump {
    path: PathBuf,
    /// The memory that a reader may use.
    pub(crate) budget: Budget,
}

impl TestDump {
    /// A file with these flags and no record.
    pub(crate) fn new(flags: u64) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = format!("nyquist-jit-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let test = Self { path: folder.join("jit-77.dump"), budget: Budget::default() };
        File::create(&test.path).unwrap();
        test.write(&[0x4a69_5444_u32, 1, 40, 62, 0, 77].map(u32::to_le_bytes).concat());
        test.write(&[0, flags].map(u64::to_le_bytes).concat());
        test
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        File::options().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn len(&self) -> u64 {
        fs::metadata(&self.path).unwrap().len()
    }

    /// Extends the file with a hole.
    pub(crate) fn extend_to(&self, len: u64) {
        File::options().write(true).open(&self.path).unwrap().set_len(len).unwrap();
    }

    fn record(&self, kind: u32, time: u64, body: &[u8]) {
        let size = (16 + body.len()) as u32;
        self.write(&[&kind.to_le_bytes()[..], &size.to_le_bytes(), &time.to_le_bytes(), body].concat());
    }

    pub(crate) fn load(&self, time: u64, address: u64, size: u64, number: u64, name: &str) {
        let fields = [0, address, address, size, number].map(u64::to_le_bytes).concat();
        let code = vec![0x90; size as usize];
        self.record(0, time, &[&fields, name.as_bytes(), b"\0", &code].concat());
    }

    pub(crate) fn relocate(&self, time: u64, number: u64, from: u64, to: u64, size: u64) {
        self.record(1, time, &[0, 0, from, to, size, number].map(u64::to_le_bytes).concat());
    }

    pub(crate) fn lines(&self, time: u64, address: u64, lines: &[(u64, u32, &str)]) {
        let mut body = [address, lines.len() as u64].map(u64::to_le_bytes).concat();
        for (address, line, file) in lines {
            // `\u{ff}` is the byte that repeats the previous file name.
            let file: Vec<u8> = file.chars().map(|char| char as u8).collect();
            body.extend([&address.to_le_bytes()[..], &line.to_le_bytes(), &[0; 4], &file, b"\0"].concat());
        }
        self.record(2, time, &body);
    }

    /// The mapping by which a process announces the file.
    pub(crate) fn mapping(&self, pid: Pid) -> Mapping {
        Mapping {
            pid: Some(pid),
            start: Avma(0x7_0000),
            len: 0x1000,
            offset: FileOffset(0),
            path: self.path.to_str().unwrap().to_owned(),
            identity: MappedFile::Unknown,
        }
    }

    /// Sets the machine in the header.
    pub(crate) fn set_machine(&self, machine: u32) {
        let file = File::options().write(true).open(&self.path).unwrap();
        nyquist_system::FileExt::write_all_at(&file, &machine.to_le_bytes(), 12).unwrap();
    }

    pub(crate) fn unwinding(&self, time: u64, section: &[u8]) {
        let sizes = [section.len() as u64, 0, 0].map(u64::to_le_bytes).concat();
        self.record(4, time, &[&sizes, section].concat());
    }

    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn open(&self) -> Dump {
        let mut modules = ModuleStore::default();
        let mapping = self.mapping(Pid(std::process::id()));
        let index = jitdump::open(&mut JitDumps::default(), &mapping, None, &mut modules);
        assert_eq!(index, Some(DumpIndex(0)));
        let module = modules.of_mapping(&mapping).unwrap();
        Dump::new(File::open(&self.path).unwrap().into(), module, mapping.pid, self.budget.charge())
    }
}

impl Drop for TestDump {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path.parent().unwrap());
    }
}
