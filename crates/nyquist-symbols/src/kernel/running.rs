//! The symbols of the running kernel. It takes the kernel 30 ms to print the hundred thousand lines of
//! `/proc/kallsyms`, so the symbols are cached for as long as it runs with the same modules.

use super::function_cache::{ModuleRanges, encode, open};
use super::kallsyms::{KERNEL, KernelError};
use super::lines::{for_each_line, parse_module};
use super::lists::RunningKernel;
use super::symbols::{KernelSymbols, UncachedSymbols};
use crate::Finder;
use crate::cache::{AnswerCache, MAKER};
use nyquist_object::Avma;
use nyquist_object::elf::build_id_in_notes;
use nyquist_system::path_id;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

/// How much of the list of all symbols is searched for the kernel's first code, because some kernels list
/// per-CPU variables before it.
const HEAD: u64 = 64 << 10;

impl KernelSymbols {
    /// The symbols of the running kernel, with its debug info and that of its modules, if they are on this
    /// machine. The symbols stay in the finder's cache for as long as the kernel runs and no module is loaded
    /// or unloaded.
    pub fn running(finder: &Finder) -> Result<Self, KernelError> {
        let kernel = RunningKernel { root: "/".into(), files: finder.kernel_files() };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = release.trim();
        let symbols = kernel.symbols(finder.cache())?.with_debug_info(finder, release);
        Ok(symbols.with_module_files(finder, Path::new("/"), release))
    }

    /// The functions of the running kernel, without lines and inlined calls. Only the kernel's own files are
    /// read, and no file is written. It takes some 30 ms.
    pub fn running_functions() -> Result<Self, KernelError> {
        Self::read(&RunningKernel { root: "/".into(), files: None })
    }
}

/// The identity of the running kernel and its modules, and the places of the modules.
struct KernelState {
    identity: String,
    places: ModuleRanges,
}

impl RunningKernel {
    fn symbols(self, cache: Option<&AnswerCache>) -> Result<KernelSymbols, KernelError> {
        let Some((cache, state)) = cache.zip(self.state()) else { return KernelSymbols::read(&self) };
        let cached = cache.kernel().and_then(|file| open(&file, &state.places, &state.identity));
        if let Some(cached) = cached {
            let build_id = build_id_in_notes(&self.notes(), cfg!(target_endian = "little"));
            let uncached = Some(UncachedSymbols::new(self));
            return Ok(KernelSymbols { build_id, uncached, ..cached });
        }
        let symbols = KernelSymbols::read(&self)?;
        // If modules were loaded or unloaded meanwhile, the symbols belong to neither state.
        let is_same = self.state().is_some_and(|now| now.identity == state.identity);
        if let Some(bytes) = encode(&symbols, &state.places, &state.identity).filter(|_| is_same) {
            cache.keep_kernel(&bytes);
        }
        Ok(symbols)
    }

    /// `None` if the kernel hides a part of it.
    fn state(&self) -> Option<KernelState> {
        let boot = fs::read_to_string(self.path("proc/sys/kernel/random/boot_id")).ok()?;
        let mut identity = format!("{MAKER}\nboot {}\n", boot.trim());
        let build_id = build_id_in_notes(&self.notes(), cfg!(target_endian = "little"));
        build_id.map(|id| writeln!(identity, "kernel {id}")).transpose().ok()?;
        let first_code = Avma(self.first_code()?);
        let mut places = ModuleRanges::from_iter([(KERNEL.to_owned(), first_code..first_code)]);
        let mut is_known = true;
        for_each_line(self.modules().as_slice(), |line| {
            is_known &= self.add_module(line, &mut identity, &mut places).is_some();
        })
        .ok()?;
        is_known.then_some(KernelState { identity, places })
    }

    /// The folder of a reloaded module has another inode, although everything else may be unchanged.
    fn add_module(&self, line: &str, identity: &mut String, places: &mut ModuleRanges) -> Option<()> {
        let (name, range) = parse_module(line)?;
        let folder = path_id(&self.path("sys/module").join(&name)).ok()?;
        writeln!(identity, "module {name} {} {}", range.end.0.wrapping_sub(range.start.0), folder.number)
            .ok()?;
        places.insert(name, range);
        Some(())
    }

    /// The start of the kernel's code. It is one of the first symbols, because the list is in the order of
    /// addresses.
    fn first_code(&self) -> Option<u64> {
        let head = BufReader::new(self.kallsyms().ok()?.take(HEAD));
        let mut lines = head.lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_suffix(" T _stext")?.to_owned()))?;
        u64::from_str_radix(&address, 16).ok().filter(|address| *address != 0)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::KernelFiles;
    use crate::cache::checksum::checksum;
    use nyquist_object::Svma;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;
    use std::sync::Arc;

    const BOOT: &str = "proc/sys/kernel/random/boot_id";
    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 t do_syscall_64
ffffffff81000180 T _etext
ffffffffc0100000 t ext4_read\t[ext4]
ffffffffc0100040 t ext4_write\t[ext4]
ffffffffc0100080 t ext4_last\t[ext4]
ffffffffc0101000 t bpf_prog_one\t[bpf]
ffffffffc0101800 t bpf_prog_one_more\t[bpf]
";

    /// A machine whose files are in a separate folder, with an empty cache.
    struct TestMachine(PathBuf);

    impl TestMachine {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("nyquist-kernel-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            for folder in ["proc/sys/kernel/random", "sys/kernel", "sys/module/ext4"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            let machine = Self(root);
            machine.write("proc/kallsyms", KALLSYMS);
            machine.write(BOOT, "5f8b7c1e\n");
            machine.write("proc/modules", "ext4 8192 1 - Live 0xffffffffc0100000\n");
            machine
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        /// Gives all functions other names, at the same places.
        fn rename_functions(&self) {
            self.write(
                "proc/kallsyms",
                &KALLSYMS.replace("do_", "new_").replace("ext4_", "new_").replace("one", "two"),
            );
        }

        fn cached(&self) -> PathBuf {
            self.0.join("cache/running.kernel")
        }

        fn name(&self, address: u64) -> String {
            let cache = AnswerCache::new(self.0.join("cache"));
            let symbols = RunningKernel { root: self.0.clone(), files: None }.symbols(Some(&cache)).unwrap();
            assert_eq!(cache.problem(), None);
            let info = symbols.lookup(Avma(address));
            info.symbol.map_or_else(|| "?".into(), |symbol| symbol.name.to_string())
        }

        /// Checks the names at an address before and after all names have changed, with an action in between.
        fn check(&self, address: u64, between: impl FnOnce(&Self), expected: [&str; 2]) {
            let before = self.name(address);
            self.rename_functions();
            between(self);
            assert_eq!([before.as_str(), &self.name(address)], expected, "{address:#x}");
        }
    }

    impl Drop for TestMachine {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn symbols_are_kept_while_the_kernel_runs() {
        let cached =
            |name, address, function| TestMachine::new(name).check(address, |_| {}, [function, function]);
        cached("image", 0xffff_ffff_8100_0104, "do_syscall_64");
        cached("module", 0xffff_ffff_c010_0044, "ext4_write");
    }

    #[test]
    fn another_boot_or_another_module_has_its_own() {
        let anew = |name, between: fn(&TestMachine)| {
            TestMachine::new(name).check(0xffff_ffff_8100_0104, between, ["do_syscall_64", "new_syscall_64"]);
        };
        anew("boot", |machine| machine.write(BOOT, "00c0ffee\n"));
        anew("unloaded", |machine| machine.write("proc/modules", ""));
        anew("reloaded", |machine| {
            let folder = machine.0.join("sys/module");
            fs::create_dir(folder.join("new")).unwrap();
            fs::remove_dir(folder.join("ext4")).unwrap();
            fs::rename(folder.join("new"), folder.join("ext4")).unwrap();
        });
        anew("damaged", |machine| {
            let mut bytes = fs::read(machine.cached()).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(machine.cached(), bytes).unwrap();
        });
    }

    #[test]
    fn files_opened_before_are_not_opened_again() {
        let machine = TestMachine::new("opened");
        machine.write("proc/modules", "ext4 8192 1 - Live 0xffffffffc0100000\n");
        fs::create_dir(machine.0.join("sys/module/ext4/sections")).unwrap();
        machine.write("sys/module/ext4/sections/.text", "0xffffffffc0100000\n");
        machine.write("sys/module/ext4/sections/.data", "0xffffffffc0108000\n");
        let files = KernelFiles::open_below(&machine.0).map(Arc::new);
        for path in ["proc/kallsyms", "proc/modules", "sys/module/ext4/sections/.text"] {
            fs::remove_file(machine.0.join(path)).unwrap();
        }
        let sections = files.as_ref().unwrap().sections("ext4").unwrap().clone();
        assert_eq!(
            sections.into_iter().collect::<Vec<_>>(),
            [(".text".to_owned(), Svma(0xffff_ffff_c010_0000))]
        );
        let cache = AnswerCache::new(machine.0.join("cache"));
        // First the kernel's symbols are read, then the cached ones.
        for _ in 0..2 {
            let kernel = RunningKernel { root: machine.0.clone(), files: files.clone() };
            let symbols = kernel.symbols(Some(&cache)).unwrap();
            let name = |address| symbols.lookup(Avma(address)).symbol.unwrap().name;
            assert_eq!(&*name(0xffff_ffff_8100_0104), "do_syscall_64");
            assert_eq!(&*name(0xffff_ffff_c010_0044), "ext4_write");
            assert_eq!(&*name(0xffff_ffff_c010_1010), "bpf_prog_one");
        }
        assert!(machine.cached().exists());
    }

    #[test]
    fn a_damaged_part_is_looked_up_anew() {
        let machine = TestMachine::new("part");
        let list = |prefix: &str| {
            let functions =
                (0_u64..1000).map(|n| format!("{:x} t {prefix}_{n}\n", 0xffff_ffff_8100_0010 + 16 * n));
            format!("ffffffff81000000 T _stext\n{}", functions.collect::<String>())
        };
        machine.write("proc/kallsyms", &list("old"));
        let in_function = |n: u64| 0xffff_ffff_8100_0014 + 16 * n;
        assert_eq!(machine.name(in_function(0)), "old_0");
        machine.write("proc/kallsyms", &list("new"));
        let mut bytes = fs::read(machine.cached()).unwrap();
        let end = bytes.len();
        bytes[end - 100] ^= 1;
        fs::write(machine.cached(), &bytes).unwrap();
        let names = [0, 894, 895, 900, 998].map(|n| machine.name(in_function(n)));
        assert_eq!(names, ["old_0", "old_894", "new_895", "new_900", "new_998"]);
        assert_eq!(fs::read(machine.cached()).unwrap(), bytes, "it is used as it is");
    }

    #[test]
    fn a_file_of_another_form_is_replaced() {
        let machine = TestMachine::new("form");
        machine.name(0xffff_ffff_8100_0104);
        let new = fs::read(machine.cached()).unwrap();
        // The format before functions were in blocks: a checksum of the rest, numbers, and the identity.
        let identity = RunningKernel { root: machine.0.clone(), files: None }.state().unwrap().identity;
        let numbers = [identity.len() as u32, 0, 0].map(u32::to_le_bytes).concat();
        let rest = [numbers.as_slice(), identity.as_bytes()].concat();
        let old = [&checksum(0, &rest).to_le_bytes(), rest.as_slice()].concat();
        for other in [old.as_slice(), b"", b"something else"] {
            fs::write(machine.cached(), other).unwrap();
            assert_eq!(machine.name(0xffff_ffff_8100_0104), "do_syscall_64");
            assert_eq!(fs::read(machine.cached()).unwrap(), new);
        }
    }

    #[test]
    fn an_open_file_is_not_seen_as_its_replacement() {
        let machine = TestMachine::new("replaced");
        machine.name(0xffff_ffff_8100_0104);
        let cache = AnswerCache::new(machine.0.join("cache"));
        let symbols = RunningKernel { root: machine.0.clone(), files: None }.symbols(Some(&cache)).unwrap();
        machine.rename_functions();
        machine.write(BOOT, "00c0ffee\n");
        assert_eq!(machine.name(0xffff_ffff_8100_0104), "new_syscall_64");
        let symbol = symbols.lookup(Avma(0xffff_ffff_8100_0104)).symbol.unwrap();
        assert_eq!(&*symbol.name, "do_syscall_64");
    }

    #[test]
    fn what_comes_and_goes_is_never_kept() {
        let anew = |name, address, names| TestMachine::new(name).check(address, |_| {}, names);
        anew("bpf", 0xffff_ffff_c010_1010, ["bpf_prog_one", "bpf_prog_two"]);
        // The end of a module's last function is not known, because other code may follow it.
        anew("last", 0xffff_ffff_c010_0084, ["ext4_last", "new_last"]);
    }

    #[test]
    fn the_file_is_private_and_reveals_no_address() {
        let machine = TestMachine::new("private");
        machine.name(0xffff_ffff_8100_0104);
        let mode = fs::metadata(machine.cached()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let bytes = fs::read(machine.cached()).unwrap();
        let upper = |at: &[u8]| at == [0xff; 4];
        assert!(!bytes[8..].windows(4).any(upper), "the upper half of an address of the kernel");
        let modules = AnswerCache::new(machine.0.join("cache")).modules().unwrap();
        assert_eq!((modules.len(), modules[0].answers), (1, 6));
        assert_eq!(modules[0].path.as_deref(), Some(Path::new("/proc/kallsyms")));
    }

    #[test]
    fn hidden_addresses_are_not_made_up() {
        let machine = TestMachine::new("hidden");
        machine.name(0xffff_ffff_8100_0104);
        machine.write("proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 t do_idle\n");
        let cache = AnswerCache::new(machine.0.join("cache"));
        let symbols = RunningKernel { root: machine.0.clone(), files: None }.symbols(Some(&cache));
        assert!(matches!(symbols, Err(KernelError::Hidden)));
    }
}
