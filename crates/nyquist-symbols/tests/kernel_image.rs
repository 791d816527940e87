//! A small program that is linked like a kernel, at kernel addresses and with a build id, but loaded at other
//! addresses, as kernels are. Its frames have lines and inlined calls, but those of another kernel do not.

use nyquist_object::{Avma, Elf, FileSource};
use nyquist_symbols::{AddressInfo, Finder, KernelSymbols, Origin, SearchPaths};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
#![no_std]
#![no_main]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
#[unsafe(no_mangle)]
#[inline(never)]
pub extern \"C\" fn _stext() { core::hint::black_box(0); }
#[inline(always)]
fn inlined(value: u32) -> u32 {
    core::hint::black_box(core::hint::black_box(value).rotate_left(3))
}
#[unsafe(no_mangle)]
#[inline(never)]
pub extern \"C\" fn do_work(value: u32) -> u32 {
    core::hint::black_box(inlined(value)) ^ 1
}
#[unsafe(no_mangle)]
pub extern \"C\" fn _start() { _stext(); core::hint::black_box(do_work(1)); }
";

const ID: &str = "0102030405060708090a0b0c0d0e0f1011121314";

/// The offset from its addresses at which the made-up kernel is loaded.
const SLIDE: u64 = 0x0b40_0000;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nyquist-kernel-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn build(folder: &Path) {
    fs::write(folder.join("vmlinux.rs"), SOURCE).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "-g", "-Cpanic=abort", "-Crelocation-model=static", "vmlinux.rs"]);
    let id = format!("-Wl,--build-id=0x{ID}");
    let link = ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0xffffffff81000000", &id];
    command.args(link.map(|argument| format!("-Clink-arg={argument}"))).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The functions of the image as the kernel lists them.
fn kallsyms(image: &Path) -> String {
    let elf = Elf::open(FileSource::new(File::open(image).unwrap())).unwrap();
    let symbols = elf.section(".symtab").unwrap();
    let strings = elf.data(&elf.sections()[symbols.link as usize]).unwrap();
    let mut lines = String::new();
    for symbol in elf.data(symbols).unwrap().as_chunks::<24>().0 {
        let at = u32::from_le_bytes(*symbol.first_chunk().unwrap()) as usize;
        let name = strings[at..].split(|byte| *byte == 0).next().unwrap();
        let name = String::from_utf8_lossy(name);
        let address = u64::from_le_bytes(*symbol[8..].first_chunk().unwrap());
        if ["_stext", "do_work"].contains(&&*name) {
            writeln!(lines, "{:016x} T {name}", address + SLIDE).unwrap();
        }
    }
    lines
}

/// The contents of `/sys/kernel/notes`.
fn notes(id: &str) -> Vec<u8> {
    let digits = id.as_bytes().as_chunks::<2>().0;
    let id: Vec<_> = digits
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    [&[4_u32, 20, 3].map(u32::to_le_bytes).concat(), &b"GNU\0"[..], &id].concat()
}

fn kernel(folder: &Path, id: &str) -> KernelSymbols {
    let kallsyms = kallsyms(&folder.join("vmlinux"));
    let symbols = KernelSymbols::parse(kallsyms.as_bytes(), std::io::empty(), &notes(id)).unwrap();
    let paths = SearchPaths { symbol_dirs: vec![folder.to_owned()], ..SearchPaths::default() };
    symbols.with_debug_info(&Finder::new(paths), "0.0.0-made-up")
}

/// The answers for the instructions of `do_work`.
fn answers(kernel: &KernelSymbols) -> Vec<AddressInfo> {
    let vmlinux = &kernel.modules()[0];
    let all: Vec<_> = (vmlinux.range.start.0..vmlinux.range.start.0 + 0x100).map(Avma).collect();
    let infos = kernel.symbolicate(&all, NonZeroUsize::MIN);
    let is_work = |info: &AddressInfo| info.symbol.as_ref().is_some_and(|symbol| &*symbol.name == "do_work");
    infos.into_iter().filter(is_work).collect()
}

#[test]
fn kernel_frames_have_lines_and_inlined_calls() {
    let folder = folder("lines");
    build(&folder);
    let kernel = kernel(&folder, ID);
    let found = kernel.debug_info().unwrap();
    assert_eq!(found.binary.as_ref().unwrap().path, folder.join("vmlinux"));
    let answers = answers(&kernel);
    let chain = |info: &AddressInfo| -> Vec<(String, Option<u32>)> {
        let frames = info
            .frames
            .iter()
            .filter(|frame| frame.file.as_deref().is_some_and(|file| file.ends_with("/vmlinux.rs")));
        let name = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
        frames.map(|frame| (name(frame.function.as_deref().unwrap()), frame.line)).collect()
    };
    let inlined = answers.iter().map(chain).find(|chain| chain.len() == 2).unwrap();
    assert_eq!(inlined, [("inlined".to_owned(), Some(10)), ("do_work".to_owned(), Some(15))]);
    assert!(answers.iter().any(|info| info.origin == Origin::DebugInfo && info.frames.len() == 1));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_debug_info_of_another_kernel_is_not_used() {
    let folder = folder("other");
    build(&folder);
    let kernel = kernel(&folder, "ff02030405060708090a0b0c0d0e0f1011121314");
    assert!(kernel.debug_info().is_none());
    let answers = answers(&kernel);
    assert!(!answers.is_empty() && answers.iter().all(|info| info.origin == Origin::Kallsyms));
    fs::remove_dir_all(&folder).unwrap();
}
