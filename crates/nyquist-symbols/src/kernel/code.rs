//! The code of the running kernel, from its memory (`/proc/kcore`). Its image is rarely on a machine, and the
//! kernel changes its own code when it starts.
//!
//! Sources: Linux's `fs/proc/kcore.c`; the System V ABI, "Program Header".

use super::kallsyms::{KERNEL, KallsymsLine, KernelError};
use super::lines::for_each_line;
use super::symbols::KernelSymbols;
use crate::disassemble::{MAX_CODE, disassemble};
use crate::{Disassembly, DisassemblyError};
use nyquist_object::elf::{Architecture, build_id_in_notes};
use nyquist_object::{Avma, ModuleId, RelativeAddress, Svma};
use nyquist_system::FileExt as _;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::Path;

/// The most parts of memory that are read. Kernels list some dozens.
const MAX_PARTS: u16 = 4096;

/// The instructions of the running kernel. Only its code is read, and neither its data nor the code of its
/// modules.
#[derive(Debug)]
pub struct KernelCode {
    symbols: KernelSymbols,
    memory: KernelMemory,
    /// Its code, from `_stext`, which is the base of relative addresses, to `_etext`.
    text: Range<Avma>,
}

/// Why there is no code of the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelCodeError {
    /// The running kernel has another build id.
    #[error("another kernel runs now")]
    OtherKernel,
    /// The kernel was built without it, or `/proc` is not that of the kernel.
    #[error("this kernel does not show its code (/proc/kcore)")]
    NotThere,
    /// Reading needs `CAP_SYS_RAWIO`, and a kernel that is not locked down.
    #[error("only root may read the kernel's code (/proc/kcore)")]
    NotPermitted,
    /// It could not be read.
    #[error("the kernel's code cannot be read (/proc/kcore)")]
    Read(#[source] io::Error),
    /// The addresses of its functions are hidden.
    #[error(transparent)]
    Symbols(#[from] KernelError),
    /// No function begins there.
    #[error("no function of the kernel begins at {0}")]
    NoFunction(RelativeAddress),
    /// The instructions cannot be decoded.
    #[error(transparent)]
    Disassembly(#[from] DisassemblyError),
}

impl KernelCode {
    /// Opens the code of the running kernel, if this is its build id. Reads all of its symbols (30 ms).
    ///
    /// # Errors
    /// Another kernel runs, or this process may not read its memory.
    pub fn open(id: Option<&ModuleId>) -> Result<Self, KernelCodeError> {
        Self::open_below(Path::new("/"), id)
    }

    /// `root` is the folder that contains `proc` and `sys`.
    fn open_below(root: &Path, id: Option<&ModuleId>) -> Result<Self, KernelCodeError> {
        let notes = fs::read(root.join("sys/kernel/notes")).unwrap_or_default();
        let running = build_id_in_notes(&notes, cfg!(target_endian = "little")).map(ModuleId::BuildId);
        if running.is_none() || running.as_ref() != id {
            return Err(KernelCodeError::OtherKernel);
        }
        let memory = KernelMemory::open(&root.join("proc/kcore"))?;
        let kallsyms =
            || File::open(root.join("proc/kallsyms")).map(BufReader::new).map_err(KernelError::Read);
        let modules = fs::read(root.join("proc/modules")).unwrap_or_default();
        let symbols = KernelSymbols::parse(kallsyms()?, modules.as_slice(), &notes)?;
        let text = text(kallsyms()?).ok_or(KernelError::Empty)?;
        Ok(Self { symbols, memory, text })
    }

    /// The instructions of the function that begins at `start`, relative to the kernel's first code: `size`
    /// bytes, or up to the function's end if this is requested.
    ///
    /// # Errors
    /// No function begins there, or it cannot be read.
    pub fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, KernelCodeError> {
        let no_function = || KernelCodeError::NoFunction(start);
        let address = Avma(self.text.start.0.checked_add(start.0.into()).ok_or_else(no_function)?);
        // Bytes between functions are not disclosed.
        let symbol = self.symbols.lookup(address).symbol.filter(|symbol| symbol.address == start);
        let rest = symbol.filter(|_| self.text.contains(&address)).and_then(|symbol| symbol.size);
        let rest = rest.ok_or_else(no_function)?;
        let len = if until_function_end { rest } else { size.min(rest) };
        let end = self.text.end.0 - address.0;
        let len = u64::from(len.min(MAX_CODE)).min(end) as usize;
        let mut code = vec![0; len];
        self.memory.read(address, &mut code)?;
        let name = |target: Svma| self.name(Avma(target.0));
        Ok(disassemble(Architecture::X86_64, &code, start, Svma(address.0), name)?)
    }

    /// The name of a called function, or of a place within one, such as `name+0x10`.
    fn name(&self, target: Avma) -> Option<String> {
        let symbol = self.symbols.lookup(target).symbol?;
        let start = self.symbols.module_of(target)?.range.start;
        let offset = RelativeAddress::from_avma(target, start)?.offset_from(symbol.address)?;
        Some(if offset == 0 { symbol.name.to_string() } else { format!("{}+{offset:#x}", symbol.name) })
    }
}

/// Where the kernel's code begins and ends.
fn text(kallsyms: impl io::BufRead) -> Option<Range<Avma>> {
    let (mut start, mut end) = (None, None);
    let read = for_each_line(kallsyms, |line| match KallsymsLine::parse(line) {
        Some(KallsymsLine { name: "_stext", module: KERNEL, address, .. }) => start = Some(Avma(address)),
        Some(KallsymsLine { name: "_etext", module: KERNEL, address, .. }) => end = Some(Avma(address)),
        _ => {}
    });
    read.ok()?;
    let (start, end) = start.zip(end)?;
    (start < end).then_some(start..end)
}

/// The kernel's memory, as in an ELF core file.
#[derive(Debug)]
struct KernelMemory {
    core: File,
    parts: Vec<CodeRange>,
}

/// A range of memory, and its offset in the file.
#[derive(Clone, Copy, Debug)]
struct CodeRange {
    address: u64,
    offset: u64,
    len: u64,
}

impl KernelMemory {
    fn open(path: &Path) -> Result<Self, KernelCodeError> {
        let core = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => KernelCodeError::NotThere,
            io::ErrorKind::PermissionDenied => KernelCodeError::NotPermitted,
            _ => KernelCodeError::Read(error),
        })?;
        let parts = parts(&core).map_err(KernelCodeError::Read)?;
        Ok(Self { core, parts })
    }

    fn read(&self, address: Avma, bytes: &mut [u8]) -> Result<(), KernelCodeError> {
        let len = bytes.len() as u64;
        let holds = |part: &&CodeRange| {
            let within = address.0.checked_sub(part.address);
            within.is_some_and(|within| part.len.checked_sub(within).is_some_and(|rest| len <= rest))
        };
        let part = self.parts.iter().find(holds);
        let part = part.ok_or_else(|| KernelCodeError::Read(io::ErrorKind::UnexpectedEof.into()))?;
        let offset = part.offset.saturating_add(address.0 - part.address);
        self.core.read_exact_at(bytes, offset).map_err(KernelCodeError::Read)
    }
}

/// The loaded parts (`PT_LOAD`) of a 64-bit core file of this machine's byte order.
fn parts(core: &File) -> io::Result<Vec<CodeRange>> {
    const MAGIC: [u8; 5] = *b"\x7fELF\x02";
    const PT_LOAD: u64 = 1;
    let mut header = [0; 64];
    core.read_exact_at(&mut header, 0)?;
    if header[..MAGIC.len()] != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let first = word(&header, 32, 8);
    let (size, count) = (word(&header, 54, 2), word(&header, 56, 2).min(MAX_PARTS.into()));
    let mut parts = Vec::new();
    for number in 0..count {
        let mut header = [0; 56];
        core.read_exact_at(&mut header, first.saturating_add(number * size))?;
        if word(&header, 0, 4) == PT_LOAD {
            let [offset, address, len] = [8, 16, 32].map(|at| word(&header, at, 8));
            parts.push(CodeRange { address, offset, len });
        }
    }
    Ok(parts)
}

/// A number of up to eight bytes in a header.
fn word(header: &[u8], at: usize, size: usize) -> u64 {
    let mut bytes = [0; 8];
    let place = if cfg!(target_endian = "little") { 0 } else { 8 - size };
    bytes[place..place + size].copy_from_slice(&header[at..at + size]);
    u64::from_ne_bytes(bytes)
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;
    use nyquist_object::BuildId;
    use std::path::PathBuf;

    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 t first
ffffffff81000010 t second
ffffffff81000020 T _etext
ffffffff81000020 t behind
";
    const ID: [u8; 4] = [1, 2, 3, 4];

    /// A machine whose kernel has the given code at its first address.
    struct TestMachine(PathBuf);

    impl TestMachine {
        fn new(name: &str, code: &[u8]) -> Self {
            let root = std::env::temp_dir().join(format!("nyquist-kcore-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            for folder in ["proc", "sys/kernel"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            fs::write(root.join("proc/kallsyms"), KALLSYMS).unwrap();
            fs::write(root.join("proc/kcore"), core(0xffff_ffff_8100_0000, code)).unwrap();
            let note = [4, ID.len() as u32, 3].into_iter().flat_map(u32::to_le_bytes);
            let note: Vec<u8> = note.chain(*b"GNU\0").chain(ID).collect();
            fs::write(root.join("sys/kernel/notes"), note).unwrap();
            Self(root)
        }

        fn open(&self) -> Result<KernelCode, KernelCodeError> {
            KernelCode::open_below(&self.0, id(&ID).as_ref())
        }
    }

    impl Drop for TestMachine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn id(bytes: &[u8]) -> Option<ModuleId> {
        BuildId::new(bytes).map(ModuleId::BuildId)
    }

    /// A core file with these bytes of memory, after a part that is not memory.
    fn core(address: u64, bytes: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 2 * 56];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54..58].copy_from_slice(&[56, 0, 2, 0]);
        file[64] = 4;
        let load = 64 + 56;
        file[load] = 1;
        for (at, value) in [(8, 64 + 2 * 56), (16, address), (32, bytes.len() as u64)] {
            file[load + at..load + at + 8].copy_from_slice(&u64::to_le_bytes(value));
        }
        [file, bytes.to_vec()].concat()
    }

    /// `first` calls `second`, and is padded with `nop`; `second` returns.
    fn code() -> Vec<u8> {
        let mut code = vec![0x90; 0x40];
        code[..5].copy_from_slice(&[0xe8, 0x0b, 0, 0, 0]);
        code[0x10] = 0xc3;
        code
    }

    #[test]
    fn functions_are_read_out_of_memory() {
        let machine = TestMachine::new("functions", &code());
        let kernel = machine.open().unwrap();
        let first = kernel.disassemble(RelativeAddress(0), 5, false).unwrap();
        let texts: Vec<_> = first.instructions.iter().map(|one| &*one.text).collect();
        assert_eq!((texts, first.size), (vec!["call second"], 5));
        let whole = kernel.disassemble(RelativeAddress(0), 0, true).unwrap();
        assert_eq!((whole.size, whole.instructions.len()), (16, 12));
        // No more than the function is returned, however much is requested.
        assert_eq!(kernel.disassemble(RelativeAddress(0x10), u32::MAX, false).unwrap().size, 16);
    }

    #[test]
    fn nothing_but_functions_is_read() {
        let machine = TestMachine::new("nothing-else", &code());
        let kernel = machine.open().unwrap();
        // The middle of a function, places after the code, and an address beyond everything.
        for start in [1, 0x20, 0x30, u32::MAX] {
            let refused = kernel.disassemble(RelativeAddress(start), 1, true);
            assert!(matches!(refused, Err(KernelCodeError::NoFunction(_))), "{start:#x}: {refused:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let machine = TestMachine::new("missing", &code()[..8]);
        let cut = machine.open().unwrap().disassemble(RelativeAddress(0), 16, false);
        assert!(matches!(cut, Err(KernelCodeError::Read(_))), "{cut:?}");
        let other = KernelCode::open_below(&machine.0, id(&[9]).as_ref());
        assert!(matches!(other, Err(KernelCodeError::OtherKernel)), "{other:?}");
        fs::write(machine.0.join("sys/kernel/notes"), b"").unwrap();
        let unknown = KernelCode::open_below(&machine.0, None);
        assert!(matches!(unknown, Err(KernelCodeError::OtherKernel)), "{unknown:?}");
        let machine = TestMachine::new("damaged", &code());
        for damaged in [&b""[..], b"\x7fELF", &[0; 64], &core(0, &[])[..100]] {
            fs::write(machine.0.join("proc/kcore"), damaged).unwrap();
            assert!(matches!(machine.open(), Err(KernelCodeError::Read(_))), "{damaged:?}");
        }
        fs::remove_file(machine.0.join("proc/kcore")).unwrap();
        assert!(matches!(machine.open(), Err(KernelCodeError::NotThere)));
    }
}
