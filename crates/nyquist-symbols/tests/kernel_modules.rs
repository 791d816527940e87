//! A small module as a kernel loads it: an object file that was not linked, with each of its sections loaded
//! at a separate address. Its frames have lines and inlined calls, but those of a module with another build
//! id do not.

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_object::{Avma, Elf, Svma, placed};
use nyquist_symbols::{AddressInfo, Finder, KernelSymbols, Origin, SearchPaths};
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `cold` is in a separate section, which is loaded before the other.
const SOURCE: &str = "\
#![no_std]
#[inline(always)]
fn inlined(value: u32) -> u32 {
    core::hint::black_box(core::hint::black_box(value).rotate_left(3))
}
#[unsafe(no_mangle)]
#[unsafe(link_section = \".text\")]
#[inline(never)]
pub extern \"C\" fn do_work(value: u32) -> u32 {
    core::hint::black_box(inlined(value)) ^ 1
}
#[unsafe(no_mangle)]
#[unsafe(link_section = \".text.unlikely\")]
#[inline(never)]
pub extern \"C\" fn cold(value: u32) -> u32 {
    core::hint::black_box(value) + 7
}
#[used]
#[unsafe(link_section = \".note.gnu.build-id\")]
static NOTE: [u32; 9] = [4, 20, 3, 0x0055_4e47, 0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d, 0x1413_1211];
";

const ID: [u8; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const TEXT: u64 = 0xffff_ffff_c030_0000;
const UNLIKELY: u64 = 0xffff_ffff_c010_0000;
const RELEASE: &str = "0.0.0-made-up";

/// The root folder of a machine that has loaded the module.
struct TestMachine {
    root: PathBuf,
    module: Vec<u8>,
}

impl TestMachine {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("nyquist-modules-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let mut machine = Self { module: Vec::new(), root };
        machine.module = machine.build();
        machine.loaded("sections/.text", format!("{TEXT:#018x}\n").as_bytes());
        machine.loaded("sections/.text.unlikely", format!("{UNLIKELY:#018x}\n").as_bytes());
        machine.loaded("sections/.exit.text", b"0x0000000000000000\n");
        machine.noted(&ID);
        machine
    }

    fn build(&self) -> Vec<u8> {
        fs::write(self.root.join("made.rs"), SOURCE).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command.args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=obj",
            "-g",
            "-Cpanic=abort",
            "-Ccodegen-units=1",
        ]);
        command.args(["made.rs", "-o", "made.ko"]).current_dir(&self.root);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(self.root.join("made.ko")).unwrap()
    }

    fn loaded(&self, file: &str, contents: &[u8]) {
        self.file(&format!("sys/module/made_up/{file}"), contents);
    }

    fn noted(&self, id: &[u8; 20]) {
        let note = [&[4_u32, 20, 3].map(u32::to_le_bytes).concat(), &b"GNU\0"[..], id].concat();
        self.loaded("notes/.note.gnu.build-id", &note);
    }

    fn file(&self, path: &str, contents: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// The list of modules, in which the name of this one has a dash, and its file is compressed.
    fn list(&self) {
        let list = b"kernel/fs/ext4/ext4.ko:\nkernel/made/made-up.ko.gz: kernel/fs/ext4/ext4.ko\n";
        self.file(&format!("lib/modules/{RELEASE}/modules.dep"), list);
    }

    fn kernel(&self, symbol_dirs: Vec<PathBuf>) -> KernelSymbols {
        let kallsyms = format!(
            "ffffffff81000000 T _stext\n{TEXT:016x} t do_work\t[made_up]\n{UNLIKELY:016x} t cold\t[made_up]\n"
        );
        let symbols = KernelSymbols::parse(kallsyms.as_bytes(), std::io::empty(), &[]).unwrap();
        let debug_dirs = Vec::new();
        let finder = Finder::new(SearchPaths { symbol_dirs, debug_dirs, ..SearchPaths::default() });
        symbols.with_module_files(&finder, &self.root, RELEASE)
    }

    /// The file that names and lines come from, if there are lines. Then the lines are checked.
    fn lines_from(&self, symbol_dirs: Vec<PathBuf>) -> Option<PathBuf> {
        let kernel = self.kernel(symbol_dirs);
        let all = |start: u64| (start..start + 0x40).map(Avma).collect::<Vec<_>>();
        let infos = kernel.symbolicate(&[all(UNLIKELY), all(TEXT)].concat(), NonZeroUsize::MIN);
        let symbols: Vec<_> = infos.iter().map(|info| &*info.symbol.as_ref().unwrap().name).collect();
        assert!(symbols[..0x40].iter().all(|name| *name == "cold"));
        assert!(symbols[0x40..].iter().all(|name| *name == "do_work"));
        if infos.iter().all(|info| info.origin == Origin::Kallsyms) {
            assert!(kernel.debug_info_at(Avma(TEXT)).is_none());
            return None;
        }
        assert!(infos[..0x40].iter().any(|info| chain(info) == [("cold".to_owned(), Some(16))]));
        let inlined = [("inlined".to_owned(), Some(4)), ("do_work".to_owned(), Some(10))];
        assert!(infos[0x40..].iter().any(|info| chain(info) == inlined), "{infos:#?}");
        let found = kernel.debug_info_at(Avma(TEXT)).unwrap();
        let path = found.tried.last().unwrap().path.clone();
        Some(path.strip_prefix(&self.root).map(Path::to_owned).unwrap_or(path))
    }
}

impl Drop for TestMachine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The frames that are in the module's source.
fn chain(info: &AddressInfo) -> Vec<(String, Option<u32>)> {
    let is_own = |file: &str| file.ends_with("/made.rs");
    let frames = info.frames.iter().filter(|frame| frame.file.as_deref().is_some_and(is_own));
    let name = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
    frames.map(|frame| (name(frame.function.as_deref().unwrap()), frame.line)).collect()
}

#[test]
fn frames_of_modules_have_lines_from_any_place() {
    let machine = TestMachine::new("places");
    let debug = format!("usr/lib/debug/lib/modules/{RELEASE}/kernel/made/made-up.ko");
    let own = format!("lib/modules/{RELEASE}/kernel/made/made-up.ko");
    assert_eq!(machine.lines_from(Vec::new()), None);
    machine.list();
    for place in [own.clone(), debug.clone(), format!("{debug}.debug")] {
        machine.file(&place, &machine.module);
        assert_eq!(machine.lines_from(Vec::new()), Some(place.clone().into()));
        fs::remove_file(machine.root.join(place)).unwrap();
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&machine.module).unwrap();
    machine.file(&format!("{own}.gz"), &packed.finish().unwrap());
    assert_eq!(machine.lines_from(Vec::new()), Some(format!("{own}.gz").into()));
    fs::remove_file(machine.root.join(format!("{own}.gz"))).unwrap();
    // A module that was loaded by hand is in no list.
    fs::remove_file(machine.root.join(format!("lib/modules/{RELEASE}/modules.dep"))).unwrap();
    machine.file("own/made_up.ko", &machine.module);
    assert_eq!(machine.lines_from(vec![machine.root.join("own")]), Some("own/made_up.ko".into()));
}

#[test]
fn files_of_another_id_or_no_place_are_not_used() {
    let machine = TestMachine::new("other");
    machine.list();
    machine.file(&format!("lib/modules/{RELEASE}/kernel/made/made-up.ko"), &machine.module);
    assert!(machine.lines_from(Vec::new()).is_some());
    machine.noted(&[7; 20]);
    assert_eq!(machine.lines_from(Vec::new()), None);
    machine.noted(&ID);
    for section in [".text", ".text.unlikely"] {
        machine.loaded(&format!("sections/{section}"), b"0x0000000000000000\n");
    }
    assert_eq!(machine.lines_from(Vec::new()), None);
    fs::remove_dir_all(machine.root.join("sys")).unwrap();
    assert_eq!(machine.lines_from(Vec::new()), None);
}

#[test]
fn damaged_modules_are_placed_or_refused() {
    let machine = TestMachine::new("damaged");
    let place = |bytes: &[u8]| {
        let Ok(elf) = Elf::open(bytes.to_vec()) else { return };
        if let Ok(image) = placed(&elf, |name| (name == ".text").then_some(Svma(TEXT))) {
            Elf::open(image).unwrap();
        }
    };
    for step in 0..64 {
        place(&machine.module[..machine.module.len() * step / 64]);
    }
    let headers = machine.module.len() - 40 * 64..machine.module.len();
    for at in headers.step_by(3).chain(0..64) {
        let mut damaged = machine.module.clone();
        damaged[at] ^= 0xff;
        place(&damaged);
    }
}
