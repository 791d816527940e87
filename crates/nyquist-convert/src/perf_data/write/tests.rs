//! Tests that read written files with nyquist itself. The live tests read them with perf.

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nyquist_object::{BuildId, RelativeAddress};
use nyquist_perf::file::FileReader;
use nyquist_profile::{
    CategoryColor, Frame, Func, Lib, LibId, Measure, Meta, Process, Profile, ProfileBuilder, Sample, StackId,
    Thread, Unit, well_known,
};
use nyquist_symbols::{Finder, KernelError, ModuleSymbols, SearchPaths};

use super::{StandIn, WriteOptions, stand_in, write_profile};
use crate::perf_data::{ImportOptions, import};
use crate::{Progress, Symbols, symbolicate};

const MS: u64 = 1_000_000;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyquist-write-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A profile under construction.
struct Made {
    builder: ProfileBuilder,
}

impl Made {
    fn new() -> Self {
        let meta = Meta {
            product: "app".into(),
            interval: MS,
            start_time: 1_763_700_000_000_000,
            arguments: Some("./app --fast".into()),
            oscpu: Some("Debian GNU/Linux 12, Linux 6.1.0-3".into()),
            abi: Some("x86_64-gcc3".into()),
            symbolicated: true,
            ..Meta::default()
        };
        Self { builder: ProfileBuilder::new(meta) }
    }

    fn lib(&mut self, path: &str, build_id: Option<String>) -> LibId {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.builder.add_lib(Lib {
            name: name.into(),
            path: path.into(),
            debug_name: name.into(),
            debug_path: path.into(),
            code_id: build_id,
            ..Lib::default()
        })
    }

    /// A stack that extends another one by a function. The function may have a lib and an address.
    fn stack(
        &mut self,
        prefix: Option<StackId>,
        name: &str,
        place: Option<(LibId, u32)>,
        mode: &str,
    ) -> StackId {
        let category = self.builder.add_category(mode, CategoryColor::Yellow).into();
        let name = self.builder.intern_string(name);
        let lib = place.map(|(lib, _)| lib);
        let func = self.builder.intern_func(Func::new(name, lib));
        let address = place.map(|(_, address)| address);
        let frame = Frame { address, category: Some(category), ..Frame::label(func) };
        let frame = self.builder.intern_frame(frame);
        self.builder.intern_stack(prefix, frame)
    }
}

fn sample(time_ms: u64, stack: StackId, weight: u64) -> Sample {
    Sample { weight, ..Sample::new(time_ms * MS, Some(stack), 0) }
}

/// The stand-in's own file serves as a real binary: it has a build id, code and symbols.
fn binary(folder: &Path, names: &[&str]) -> (String, String) {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let path = folder.join("libreal.so");
    std::fs::write(&path, stand_in::file(&names, None)).unwrap();
    let id = BuildId::new(&stand_in::build_id(&names)).unwrap().to_string();
    (path.to_string_lossy().into_owned(), id)
}

/// A profile with code of every kind, in two processes.
fn profile(folder: &Path) -> Profile {
    let mut made = Made::new();
    let (path, id) = binary(folder, &["main", "work"]);
    let real = made.lib(&path, Some(id));
    let gone = made.lib("/gone/libgone.so", Some("aabb".into()));
    let jit = made.lib("/tmp/jit-77.dump", None);
    let kernel = made.lib("[kernel.kallsyms]", Some("ccdd".into()));
    let user = well_known::USER;
    let main = made.stack(None, "main", Some((real, 0x1004)), user);
    let work = made.stack(Some(main), "work", Some((real, 0x1018)), user);
    let gone = made.stack(Some(work), "gone::call", Some((gone, 0x77)), user);
    let jitted = made.stack(Some(gone), "jitted <script>", Some((jit, 0x50)), user);
    let label = made.stack(Some(main), "a label", None, user);
    let system_call = made.stack(Some(work), "do_syscall_64", Some((kernel, 0x100)), well_known::KERNEL);
    let schedule = made.stack(Some(system_call), "schedule", Some((kernel, 0x200)), well_known::KERNEL);

    let builder = &mut made.builder;
    let process =
        |pid: &str, name: &str, start| Process { pid: pid.into(), name: name.into(), start, end: None };
    let first = builder.add_process(process("77", "app", 0));
    let second = builder.add_process(Process { end: Some(9 * MS), ..process("77.1", "child", 5 * MS) });
    let main_thread = builder.add_thread(Thread { is_main: true, ..Thread::new(first, "77", "app") });
    let worker = builder.add_thread(Thread {
        start: MS,
        end: Some(7 * MS),
        ..Thread::new(first, "78", "worker of a long name")
    });
    let child =
        Thread { is_main: true, start: 5 * MS, end: Some(9 * MS), ..Thread::new(second, "77", "child") };
    let child = builder.add_thread(child);
    builder.add_sample(main_thread, sample(1, work, 1));
    builder.add_sample(main_thread, sample(3, jitted, 4));
    builder.add_sample(worker, sample(2, label, 1));
    builder.add_sample(worker, sample(4, schedule, 2));
    builder.add_sample(worker, Sample { off_cpu: true, ..sample(5, schedule, 3) });
    builder.add_sample(child, sample(6, main, 1));
    made.builder.finish()
}

fn finder(folder: &Path) -> Finder {
    Finder::new(SearchPaths { symbol_dirs: vec![folder.to_owned()], ..SearchPaths::default() })
}

/// Writes the profile, and reads it as a recording.
fn written_and_read(profile: &Profile, folder: &Folder) -> (Profile, FileReader) {
    let stand_ins = folder.0.join("symbols");
    let finder = finder(&folder.0);
    let options = WriteOptions { finder: &finder, stand_ins: &stand_ins };
    let (out, files) = write_profile(profile, options, Cursor::new(Vec::new())).unwrap();
    std::fs::create_dir_all(&stand_ins).unwrap();
    for StandIn { file_name, bytes } in files {
        std::fs::write(stand_ins.join(file_name), bytes).unwrap();
    }
    let path = folder.0.join("perf.data");
    std::fs::write(&path, out.into_inner()).unwrap();
    let options = ImportOptions { finder: finder.clone(), ..ImportOptions::default() };
    let imported = import(FileReader::open(&path).unwrap(), options).unwrap();
    assert_eq!(imported.notes, Vec::<String>::new());
    let symbols =
        Symbols { finder: &finder, kernel: |_| Err(KernelError::Empty), threads: NonZeroUsize::MIN };
    let finished = imported.finished;
    let named = symbolicate(finished.profile, finished.libs.sources(), symbols, &Progress::default());
    (named.profile, FileReader::open(&path).unwrap())
}

/// Each sample: its process and thread, time in ms, weight, whether it waits, and its stack, outermost first.
fn samples(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for thread in profile.threads() {
        let process = &profile.process(thread.process).name;
        for sample in &thread.samples {
            let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
            let mut names: Vec<_> = frames.map(|frame| profile.func_name(frame.func)).collect();
            names.reverse();
            let (time, weight, off) = (sample.time / MS, sample.weight, sample.off_cpu);
            lines.push(format!("{process}/{} {time} {weight} {off} {}", thread.name, names.join(";")));
        }
    }
    lines
}

#[test]
fn a_written_profile_is_read_back_the_same() {
    let folder = Folder::new();
    let profile = profile(&folder.0);
    let (read, _) = written_and_read(&profile, &folder);
    assert_eq!(samples(&read), samples(&profile));
    let lives = |profile: &Profile| -> Vec<_> {
        profile.threads().iter().map(|thread| (thread.start, thread.end)).collect()
    };
    assert_eq!(lives(&read), lives(&profile));
    assert_eq!(read.meta().start_time, profile.meta().start_time);
}

#[test]
fn code_is_in_its_binary_or_in_the_kernel() {
    let folder = Folder::new();
    let (read, _) = written_and_read(&profile(&folder.0), &folder);
    let place = |name: &str| {
        let frame = read.frames().iter().find(|frame| read.func_name(frame.func) == name).unwrap();
        let lib = read.func(frame.func).lib.map(|lib| read.lib(lib).name.as_str());
        let category = frame.category.map(|pair| read.category(pair.category).name.as_str());
        (lib.unwrap_or_default(), frame.address.unwrap_or_default(), category.unwrap_or_default())
    };
    assert_eq!(place("work"), ("libreal.so", 0x1018, "User"));
    assert_eq!(place("gone::call").0, "libgone.so");
    assert_eq!(place("jitted <script>").0, "jit-77.dump");
    assert_eq!(place("a label").0, "functions");
    assert_eq!((place("schedule").0, place("schedule").2), ("[kernel code]", "Kernel"));
}

#[test]
fn functions_of_the_kernel_are_in_one_file() {
    let folder = Folder::new();
    written_and_read(&profile(&folder.0), &folder);
    let file = std::fs::read(folder.0.join("symbols/kernel.ko")).unwrap();
    let symbols = ModuleSymbols::from_image(file).unwrap();
    let named = |address: u32| symbols.lookup(RelativeAddress(address)).symbol.map(|it| it.name.to_string());
    let names = [named(0x1000), named(0x1010)];
    assert_eq!(names, [Some("do_syscall_64".to_owned()), Some("schedule".to_owned())]);
}

#[test]
fn the_file_says_what_is_known_of_its_recording() {
    let folder = Folder::new();
    let (_, reader) = written_and_read(&profile(&folder.0), &folder);
    let features = reader.features();
    assert_eq!(features.command_line.join(" "), "nyquist record -- ./app --fast");
    assert_eq!(features.os_release.as_deref(), Some("6.1.0-3"));
    assert_eq!(features.arch.as_deref(), Some("x86_64"));
    assert_eq!(features.hostname, None);
    let paths: Vec<_> =
        features.build_ids.iter().map(|file| file.path.rsplit(['/', '\\']).next().unwrap()).collect();
    assert_eq!(paths, ["libreal.so", "libgone.so", "jit-77.dump", "functions"]);
    let names: Vec<_> = reader.events().iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["cpu-clock", "offcpu-time"]);
}

#[test]
fn what_is_counted_is_an_event_of_that_name() {
    for (name, unit) in [("page-faults", Unit::Count), ("inuse_space", Unit::Bytes), ("cycles", Unit::Count)]
    {
        let folder = Folder::new();
        let mut made = Made::new();
        made.builder.meta_mut().interval = 1;
        made.builder.meta_mut().measure = Measure { name: name.into(), unit };
        let process = made.builder.add_process(Process { pid: "77".into(), ..Process::default() });
        let thread = made.builder.add_thread(Thread::new(process, "77", "app"));
        for (time, weight) in [(1, 300), (2, 7)] {
            let stack = made.builder.intern_label(None, "touch", None);
            made.builder.add_sample(thread, Sample { weight, ..Sample::new(time * MS, Some(stack), 0) });
        }
        let (read, reader) = written_and_read(&made.builder.finish(), &folder);
        assert_eq!(reader.events()[0].name, name);
        // The format has no unit.
        assert_eq!(read.meta().measure, Measure { name: name.into(), unit: Unit::Count });
        let weights: Vec<_> = read.threads()[0].samples.iter().map(|sample| sample.weight).collect();
        assert_eq!((weights, read.meta().interval), (vec![300, 7], 1), "{name}");
    }
}

#[test]
fn an_empty_profile_is_written_without_samples() {
    let folder = Folder::new();
    let profile = Made::new().builder.finish();
    let (read, _) = written_and_read(&profile, &folder);
    assert_eq!(read.threads().len(), 0);
}
