//! Implements what sampling by suspending threads needs, for Windows.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::ops::Range;
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nyquist_convert::event::{MappedFile, Registers};
use nyquist_object::{FileSource, Pe, PeCodeId};
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER};
use windows_sys::Win32::System::SystemInformation::{
    IMAGE_FILE_MACHINE, IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64,
};

use super::listing::ProcessListing;
use super::process::file_name;
use super::sys::thread::ThreadRegisters;
use super::sys::timer::{Flag, Timer};
use super::sys::{clock, memory, modules, process, thread};
use crate::suspend::system::{
    ImageEnd, ListedImage, ListedProcess, ListedThread, LoadedModule, SamplingDenied, StoppedRegisters,
    System,
};

/// The steps in which the system's times of threads advance, in nanoseconds: those of its timer interrupt.
const COARSE_STEP_NS: u64 = 15_625_000;
/// How often, and for how long each time, cycles are counted to know their rate.
const RATE_MEASUREMENTS: u32 = 6;
const RATE_MEASUREMENT: Duration = Duration::from_millis(2);
/// The libraries whose code makes system calls.
const CALLING_LIBRARIES: [&str; 2] = ["ntdll.dll", "win32u.dll"];
/// Where the thread environment block has the end of the stack (`NT_TIB.StackBase`) and its lowest page that is
/// in use (`NT_TIB.StackLimit`).
const STACK_BASE: u64 = 8;
const STACK_LIMIT: u64 = 16;

/// Windows.
#[derive(Debug)]
pub(crate) struct WindowsSystem {
    listing: ProcessListing,
    timer: Timer,
    stop: Arc<Flag>,
    /// About how many cycles a running thread uses in a microsecond; `None` if they are not counted. The rate can
    /// vary ("Do not attempt to convert the CPU clock cycles returned by QueryThreadCycleTime to elapsed time"), so
    /// cycles show which threads have run, and not for how long.
    cycles_per_us: Option<f64>,
}

/// A thread that is sampled.
#[derive(Debug)]
pub(crate) struct SampledThread {
    handle: OwnedHandle,
    /// Its cycles when its CPU time was last read, and about how long it had run since the reading before.
    cycles: Cell<u64>,
    estimated_run_ns: Cell<u64>,
}

impl WindowsSystem {
    /// Prepares for sampling until the flag is set. Takes some milliseconds.
    pub(crate) fn new(stop: Arc<Flag>) -> io::Result<Self> {
        Ok(Self {
            listing: ProcessListing::default(),
            timer: Timer::new()?,
            stop,
            cycles_per_us: cycle_rate(),
        })
    }

    /// Whether a process is the one that was listed with its number, if it was listed. A process that ends
    /// meanwhile leaves its number to others.
    fn is_the_listed_one(&self, pid: u32, process: &OwnedHandle) -> bool {
        let listed = self.listing.processes().find(|listed| listed.pid == pid);
        listed.zip(process::began(process)).is_none_or(|(listed, began)| listed.began == began)
    }
}

/// Measures at which rate the cycles of a running thread are counted. Of several measurements, the highest is
/// the one in which the thread was interrupted least.
fn cycle_rate() -> Option<f64> {
    let measured_rate = || {
        let (begin, cycles) = (clock::monotonic_ns(), thread::own_cycles()?);
        while clock::monotonic_ns() - begin < RATE_MEASUREMENT.as_nanos() as u64 {
            std::hint::spin_loop();
        }
        let used = thread::own_cycles()?.checked_sub(cycles)?;
        Some(used as f64 * 1000.0 / (clock::monotonic_ns() - begin) as f64)
    };
    let rates = (0..RATE_MEASUREMENTS).map_while(|_| measured_rate()).filter(|rate| *rate > 1.0);
    rates.max_by(f64::total_cmp)
}

impl System for WindowsSystem {
    type Process = OwnedHandle;
    type Thread = SampledThread;
    type Registers = ThreadRegisters;

    fn now(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait_until(&mut self, time_ns: u64) -> bool {
        match time_ns.saturating_sub(clock::monotonic_ns()) {
            0 => self.stop.is_set(),
            span => self.timer.wait(span, &self.stop),
        }
    }

    fn list_processes(&mut self, out: &mut Vec<ListedProcess>) -> bool {
        let is_listed = self.listing.refresh();
        out.extend(self.listing.processes());
        is_listed
    }

    fn list_threads(&mut self, pid: u32, _: &OwnedHandle, out: &mut Vec<ListedThread>) {
        out.extend(self.listing.threads(pid));
    }

    fn open_process(&mut self, pid: u32) -> Result<OwnedHandle, SamplingDenied> {
        let process = process::open(pid).map_err(|error| denied(pid, &error))?;
        if process::has_ended(&process) {
            return Err(SamplingDenied::Gone);
        }
        if !self.is_the_listed_one(pid, &process) {
            return Err(SamplingDenied::Gone);
        }
        match foreign_code(process::machine(&process), process::native_machine()) {
            Some(ForeignCode::Translated) if is_arm64ec(&process) => {
                Err(refusal_of_code(pid, ForeignCode::Arm64Ec))
            }
            Some(foreign) => Err(refusal_of_code(pid, foreign)),
            None => Ok(process),
        }
    }

    fn process_name(&mut self, process: &OwnedHandle) -> Option<String> {
        let path = process::program(process)?;
        let name = file_name(&path);
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn has_ended(&mut self, process: &OwnedHandle) -> bool {
        process::has_ended(process)
    }

    fn modules(
        &mut self,
        process: &OwnedHandle,
        known: &dyn Fn(ListedImage) -> bool,
    ) -> Option<(Vec<ListedImage>, Vec<LoadedModule>)> {
        let bases = modules::bases(process);
        let listed: Vec<_> = bases.iter().map(|start| listed_image(process, *start)).collect();
        let new = listed.iter().filter(|image| !known(**image));
        let new = new.filter_map(|image| loaded_module(process, *image)).collect();
        (!listed.is_empty()).then_some((listed, new))
    }

    fn made_code(&mut self, process: &OwnedHandle, image_end: ImageEnd<'_>) -> Vec<Range<u64>> {
        memory::made_code(process, image_end)
    }

    fn open_thread(&mut self, process: &OwnedHandle, tid: u32) -> Option<SampledThread> {
        let handle = thread::open(tid).ok().filter(|thread| thread::is_of(thread, process))?;
        Some(SampledThread { handle, cycles: Cell::new(0), estimated_run_ns: Cell::new(0) })
    }

    fn thread_name(&mut self, thread: &SampledThread) -> Option<String> {
        thread::name(&thread.handle)
    }

    fn cpu_time_ns(&mut self, thread: &SampledThread) -> Option<u64> {
        if let Some(rate) = self.cycles_per_us {
            // A thread that has not run yet has no cycles.
            let cycles = thread::cycles(&thread.handle).unwrap_or_default();
            let used = cycles.saturating_sub(thread.cycles.replace(cycles));
            thread.estimated_run_ns.set((used as f64 * 1000.0 / rate) as u64);
        }
        thread::coarse_cpu_ns(&thread.handle)
    }

    fn estimated_run_ns(&self, thread: &SampledThread) -> Option<u64> {
        self.cycles_per_us.map(|_| thread.estimated_run_ns.get())
    }

    fn cpu_clock_step_ns(&self) -> u64 {
        COARSE_STEP_NS
    }

    fn stack(&mut self, process: &OwnedHandle, thread: &SampledThread, pointer: u64) -> Option<Range<u64>> {
        let block = thread::environment_block(&thread.handle);
        let field = |offset| memory::read_u64(process, block?.checked_add(offset)?);
        let provided = field(STACK_LIMIT).zip(field(STACK_BASE)).map(|(limit, base)| limit..base);
        // A program can use other stacks, or state anything.
        provided
            .filter(|stack| stack.contains(&pointer))
            .or_else(|| memory::end_of_region(process, pointer).map(|end| pointer..end))
    }

    fn suspend(&mut self, thread: &SampledThread) -> bool {
        thread::suspend(&thread.handle)
    }

    fn registers(&mut self, thread: &SampledThread) -> Option<ThreadRegisters> {
        ThreadRegisters::read(&thread.handle)
    }

    fn read_memory(&mut self, process: &OwnedHandle, address: u64, out: &mut [u8]) -> usize {
        memory::read(process, address, out)
    }

    fn resume(&mut self, thread: &SampledThread) {
        thread::resume(&thread.handle);
    }

    fn is_at_call(&mut self, process: &OwnedHandle, instruction_pointer: u64) -> bool {
        let mut before = [0; MAX_CALL_LEN];
        let Some(at) = instruction_pointer.checked_sub(MAX_CALL_LEN as u64) else { return false };
        memory::read(process, at, &mut before) == before.len() && ends_with_call(&before)
    }
}

impl StoppedRegisters for ThreadRegisters {
    fn instruction_pointer(&self) -> u64 {
        self.instruction_pointer()
    }

    fn stack_pointer(&self) -> u64 {
        self.stack_pointer()
    }

    fn event_registers(&self) -> Registers {
        self.event_registers()
    }
}

/// The longest instruction sequence that makes a system call.
const MAX_CALL_LEN: usize = 8;

/// Whether code ends with an instruction that makes a system call: `syscall`, `int 2eh`, or a call through the
/// shared page by which Wine makes them.
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: &[u8]) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const INTERRUPT: [u8; 2] = [0xcd, 0x2e];
    const WINE: [u8; 7] = [0xff, 0x14, 0x25, 0x00, 0x10, 0xfe, 0x7f];
    code.ends_with(&SYSCALL) || code.ends_with(&INTERRUPT) || code.ends_with(&WINE)
}

/// Whether code ends with the instruction that makes a system call (`svc`).
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: &[u8]) -> bool {
    let last = code.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    last.is_some_and(|instruction| instruction & 0xffe0_001f == 0xd400_0001)
}

/// How much of an image's headers is read to tell it from others. They begin with its time, its size and its sections.
const HEADER_BYTES: usize = 1024;

/// An image at an address, with a number that is made of its headers and of the file that the system has mapped there.
fn listed_image(process: &OwnedHandle, start: u64) -> ListedImage {
    let mut headers = [0; HEADER_BYTES];
    memory::read(process, start, &mut headers);
    let mut hasher = DefaultHasher::new();
    (headers, memory::mapped_file(process, start)).hash(&mut hasher);
    ListedImage { start, stamp: hasher.finish() }
}

/// Describes an image.
fn loaded_module(process: &OwnedHandle, listed: ListedImage) -> Option<LoadedModule> {
    let start = listed.start;
    let path = modules::path(process, start)?;
    let name = file_name(&path);
    let makes_calls = CALLING_LIBRARIES.iter().any(|library| name.eq_ignore_ascii_case(library));
    let identity = code_id(process, start).map_or(MappedFile::Unknown, MappedFile::Pe);
    Some(LoadedModule { listed, len: modules::size(process, start)?.into(), path, identity, makes_calls })
}

/// The identity of an image, from its headers in memory ("PE Format": the COFF header and the optional header).
fn code_id(process: &OwnedHandle, start: u64) -> Option<PeCodeId> {
    let u32_at = |offset: u64| {
        let mut bytes = [0; 4];
        let read = memory::read(process, start.checked_add(offset)?, &mut bytes);
        (read == bytes.len()).then(|| u32::from_le_bytes(bytes))
    };
    let header = u64::from(u32_at(0x3c)?);
    Some(PeCodeId { timestamp: u32_at(header + 8)?, size_of_image: u32_at(header + 24 + 56)? })
}

/// The kind of processor that this program is built for.
#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: IMAGE_FILE_MACHINE = IMAGE_FILE_MACHINE_AMD64;
#[cfg(target_arch = "aarch64")]
const OWN_MACHINE: IMAGE_FILE_MACHINE = IMAGE_FILE_MACHINE_ARM64;

/// Code that is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignCode {
    /// It is translated while it runs, and the program is for 64-bit processors.
    Translated,
    /// It is for this processor, and works beside translated code.
    Arm64Ec,
    /// It has 32 bits.
    Of32Bits,
    /// This program itself is translated, and does not see others as they are.
    Ours,
}

/// Whether a process's code is none that is sampled, by the kinds of processor of the process and of the machine.
fn foreign_code(
    process: Option<IMAGE_FILE_MACHINE>,
    native: Option<IMAGE_FILE_MACHINE>,
) -> Option<ForeignCode> {
    match process {
        _ if native.is_some_and(|native| native != OWN_MACHINE) => Some(ForeignCode::Ours),
        None => None,
        Some(process) if process == OWN_MACHINE => None,
        Some(IMAGE_FILE_MACHINE_AMD64 | IMAGE_FILE_MACHINE_ARM64) => Some(ForeignCode::Translated),
        Some(_) => Some(ForeignCode::Of32Bits),
    }
}

/// Whether the program's file has native code that works beside translated code (ARM64EC).
fn is_arm64ec(process: &OwnedHandle) -> bool {
    let file = process::program(process).and_then(|path| nyquist_system::open_regular(Path::new(&path)).ok());
    file.and_then(|file| Pe::open(FileSource::new(file)).ok()).is_some_and(|image| image.is_arm64ec())
}

fn refusal_of_code(pid: u32, foreign: ForeignCode) -> SamplingDenied {
    let (reason, advice) = match foreign {
        ForeignCode::Translated => (
            format!("process {pid} is a program for other processors, and only native code is sampled"),
            "record a build for this machine's processor",
        ),
        ForeignCode::Arm64Ec => (
            format!(
                "process {pid} is an ARM64EC program, which runs translated code, too, and only native code is sampled"
            ),
            "record a build of it for ARM64, or this one in a terminal of an administrator with `--backend etw`",
        ),
        ForeignCode::Of32Bits => (
            format!("process {pid} is a 32-bit program, and only 64-bit programs are sampled"),
            "record a 64-bit build of the program, or this one in a terminal of an administrator with `--backend etw`",
        ),
        ForeignCode::Ours => (
            "this nyquist is for other processors, and is translated on this machine".to_owned(),
            "use a nyquist for this machine's processor",
        ),
    };
    SamplingDenied::Refused { reason, advice: Some(advice.to_owned()) }
}

fn denied(pid: u32, error: &io::Error) -> SamplingDenied {
    match error.raw_os_error().map(|code| code as u32) {
        Some(ERROR_INVALID_PARAMETER) => SamplingDenied::Gone,
        Some(ERROR_ACCESS_DENIED) => SamplingDenied::Refused {
            reason: format!("process {pid} may not be read: it is another user's, elevated, or protected"),
            advice: Some(
                "run nyquist as administrator; nothing can sample protected processes such as antivirus software"
                    .to_owned(),
            ),
        },
        _ => SamplingDenied::Refused { reason: format!("process {pid} cannot be opened: {error}"), advice: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn calls_are_distinguished_from_other_code() {
        assert!(
            ends_with_call(b"\xb8\x01\0\0\0\x90\x0f\x05")
                && ends_with_call(b"\x90\xff\x14\x25\0\x10\xfe\x7f")
        );
        assert!(!ends_with_call(b"\x0f\x05\x90\x90\x90\x90\x90\x90"));
    }

    #[test]
    fn only_native_64_bit_code_is_sampled() {
        const OTHER: IMAGE_FILE_MACHINE = OWN_MACHINE ^ IMAGE_FILE_MACHINE_AMD64 ^ IMAGE_FILE_MACHINE_ARM64;
        const I386: IMAGE_FILE_MACHINE = 0x14c;
        let own = Some(OWN_MACHINE);
        let found = [(own, own), (None, None), (Some(OTHER), own), (Some(I386), own), (own, Some(OTHER))]
            .map(|(process, native)| foreign_code(process, native));
        let expected = [ForeignCode::Translated, ForeignCode::Of32Bits, ForeignCode::Ours].map(Some);
        assert_eq!(found[..2], [None, None]);
        assert_eq!(found[2..], expected);
        let reasons =
            [ForeignCode::Translated, ForeignCode::Arm64Ec].map(|it| match refusal_of_code(7, it) {
                SamplingDenied::Refused { reason, .. } => reason,
                SamplingDenied::Gone => String::new(),
            });
        assert!(reasons[0].contains("for other processors") && reasons[1].contains("ARM64EC"));
    }

    #[test]
    fn what_was_not_listed_is_not_opened() {
        let mut system = WindowsSystem::new(Arc::new(Flag::new().unwrap())).unwrap();
        system.list_processes(&mut Vec::new());
        let pid = std::process::id();
        let own = system.open_process(pid).unwrap();
        assert!(system.is_the_listed_one(pid, &own));
        let other = system.listing.processes().find(|listed| listed.pid != pid).unwrap();
        assert!(!system.is_the_listed_one(other.pid, &own), "another process has the number");
        let threads = |pid| system.listing.threads(pid).map(|thread| thread.tid).collect::<Vec<u32>>();
        let (ours, others) = (threads(pid), threads(other.pid));
        assert!(system.open_thread(&own, ours[0]).is_some());
        assert!(others.iter().all(|tid| system.open_thread(&own, *tid).is_none()));
    }

    #[test]
    fn this_process_is_described() {
        let mut system = WindowsSystem::new(Arc::new(Flag::new().unwrap())).unwrap();
        let own = system.open_process(std::process::id()).unwrap();
        let (starts, modules) = system.modules(&own, &|_| false).unwrap();
        assert_eq!(starts.len(), modules.len());
        let program = std::env::current_exe().unwrap();
        let program = modules.iter().find(|module| program.to_str() == Some(&module.path)).unwrap();
        assert!(matches!(program.identity, MappedFile::Pe(id) if u64::from(id.size_of_image) == program.len));
        assert!(modules.iter().any(|module| module.makes_calls));
        assert_eq!(system.open_process(0x7fff_fff0).unwrap_err(), SamplingDenied::Gone);
    }
}
