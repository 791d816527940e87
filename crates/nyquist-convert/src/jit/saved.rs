//! Code that was generated at run time, from the jitdump or the perf map that is still on this machine.
//!
//! Both are files that the program wrote, and they name source files. They are used only if the id of the lib
//! shows that they are those of the recording, and if only this user or root can have written them. So they
//! give access to nothing that the user could not read, and another user's profile cannot name such a file.

use crate::files::opened::{FileDenied, Root, own_user};
use crate::jit::dump::{Code, Dump};
use crate::jit::id;
use crate::jit::runtime::CodeName;
use crate::module_index::ModuleIndex;
use nyquist_object::elf::Architecture;
use nyquist_object::{DebugId, RelativeAddress};
use nyquist_perf::{Budget, CodeNames};
use nyquist_profile::Lib;
use nyquist_symbols::special_source_path;
use nyquist_system::{FileExt as _, HeldFile, file_id};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The most memory that the names of one such file take.
const MAX_MEMORY: u64 = 256 << 20;

/// The most bytes of code that are returned at once.
const MAX_CODE_BYTES: u32 = 16 << 20;

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedCodeError {
    /// The file is not used.
    #[error("{0} is not used: {1}")]
    Refused(String, #[source] RefusedSideFile),
    /// The file is not that of the recording.
    #[error("{0} is another file than the one that was recorded")]
    Other(String),
    /// The file is a perf map, which has no instructions.
    #[error("a perf map has names and no instructions; a jitdump has both (node --perf-prof)")]
    NoInstructions,
    /// No code was generated there.
    #[error("no code at {0}")]
    NoCode(RelativeAddress),
    /// It cannot be read.
    #[error("cannot read the code: {0}")]
    Unreadable(#[source] io::Error),
}

/// Why a file that a program wrote beside its code is not used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RefusedSideFile(#[from] FileDenied);

/// The jitdump or the perf map of a lib.
#[derive(Debug)]
pub struct SavedCode(Kind);

#[derive(Debug)]
enum Kind {
    Dump { file: Arc<File>, codes: Vec<Code>, architecture: Architecture },
    Map(CodeNames),
}

impl SavedCode {
    /// Whether a lib's code was generated at run time.
    pub fn is_of(lib: &Lib) -> bool {
        id::is_dump(&lib.breakpad_id).is_some()
    }

    /// Opens the file of a lib, if it exists, is trusted, and is the one that was recorded. O(length of the
    /// file).
    ///
    /// # Errors
    /// The file does not exist, is not trusted, or is another one.
    pub fn open(lib: &Lib) -> Result<Self, SavedCodeError> {
        let refused = |why| SavedCodeError::Refused(lib.path.clone(), RefusedSideFile(why));
        let root = Root::own().ok_or_else(|| refused(FileDenied::Absent))?;
        let found = root.open(Path::new(&lib.path)).and_then(|found| found.trusted(&[own_user()]));
        let file = found.map_err(refused)?.file;
        let is_it = |id: Option<DebugId>| id.is_some_and(|id| id.breakpad() == lib.breakpad_id);
        let other = || SavedCodeError::Other(lib.path.clone());
        if id::is_dump(&lib.breakpad_id) == Some(true) {
            let file = Arc::new(file);
            let mut dump = Dump::new(
                HeldFile::Here(Arc::clone(&file)),
                ModuleIndex::default(),
                None,
                Budget::new(MAX_MEMORY).charge(),
            );
            dump.read_on();
            dump.header().filter(|header| is_it(Some(id::of_dump(header)))).ok_or_else(other)?;
            let architecture = dump.architecture();
            return Ok(Self(Kind::Dump { file, codes: dump.codes().to_vec(), architecture }));
        }
        if !is_it(file_id(&file).ok().map(id::of_map)) {
            return Err(other());
        }
        let names = CodeNames::read(file, &Budget::new(MAX_MEMORY)).map_err(SavedCodeError::Unreadable)?;
        Ok(Self(Kind::Map(names)))
    }

    /// The compiler's spelling of a source file, if it named the file. `file` may have this spelling, or be
    /// its special path. O(n) in the number of the file's names and lines.
    pub fn named_source(&self, file: &str) -> Option<String> {
        let special = special_source_path(file);
        let is_it = |named: &&str| special_source_path(named) == special;
        let in_name = |name: &str| CodeName::parse(name).file.filter(is_it).map(str::to_owned);
        let in_lines = |code: &Code| {
            let mut lines = code.lines.iter().map(|line| &*line.file);
            lines.find(is_it).map(str::to_owned)
        };
        match &self.0 {
            Kind::Dump { codes, .. } => {
                codes.iter().find_map(|code| in_name(&code.name).or_else(|| in_lines(code)))
            }
            Kind::Map(names) => names.iter().find_map(|code| in_name(code.name)),
        }
    }

    /// The bytes of code from an address on: `size` of them, or up to the end of the function; no more than
    /// the function has.
    ///
    /// # Errors
    /// No code is at the address.
    pub fn code(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<(Architecture, Vec<u8>), SavedCodeError> {
        let Kind::Dump { file, codes, architecture } = &self.0 else {
            return Err(SavedCodeError::NoInstructions);
        };
        let after = codes.partition_point(|code| code.offset <= start.0);
        let code = after.checked_sub(1).and_then(|at| codes.get(at));
        let left = code.and_then(|code| code.size.checked_sub(start.0 - code.offset));
        let left = left.filter(|left| *left > 0).ok_or(SavedCodeError::NoCode(start))?;
        let size = if until_function_end { left } else { size.min(left) };
        let mut bytes = vec![0; size.min(MAX_CODE_BYTES) as usize];
        file.read_exact_at(&mut bytes, start.0.into()).map_err(SavedCodeError::Unreadable)?;
        Ok((*architecture, bytes))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::converter::Converter;
    use crate::event::{Event, EventKind, Pid, Sample, Timestamp, UserStack};
    use crate::jit::tests::test_dump::TestDump;
    use crate::options::Options;
    use nyquist_object::Avma;
    use nyquist_profile::Meta;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// The lib of a jitdump, and the address in it of a sample at an address.
    fn recorded(dump: &TestDump, address: u64) -> (Lib, RelativeAddress) {
        let own = Pid(std::process::id());
        let options = Options::new(Timestamp(0), Meta::default());
        let mut converter = Converter::new(options);
        let sample = Sample::in_user_code(own, UserStack::Walked(vec![Avma(address)]));
        for (time, kind) in [(1, EventKind::Map(dump.mapping(own))), (100, EventKind::Sample(sample))] {
            converter.push(Event { time: Timestamp(time), cpu: Some(0), kind });
        }
        let profile = converter.finish().profile;
        let frame = profile.frames().iter().find(|frame| profile.func(frame.func).lib.is_some()).unwrap();
        let lib = profile.lib(profile.func(frame.func).lib.unwrap()).clone();
        (lib, RelativeAddress(frame.address.unwrap()))
    }

    fn dump() -> TestDump {
        let dump = TestDump::new(0);
        dump.lines(1, 0x7000_0000, &[(0x7000_0000, 7, "/included.js")]);
        dump.load(2, 0x7000_0000, 16, 1, "JS:*first /x.js:1:2");
        dump.load(3, 0x7000_0100, 32, 2, "second");
        dump
    }

    #[test]
    fn a_jitdumps_instructions_are_found_by_lib_id() {
        let dump = dump();
        let (lib, address) = recorded(&dump, 0x7000_0104);
        assert_eq!((lib.breakpad_id.len(), &*lib.debug_name), (33, "jit-77.dump"));
        assert!(SavedCode::is_of(&lib));
        let saved = SavedCode::open(&lib).unwrap();
        let code = |start: u32, size, whole| {
            saved.code(RelativeAddress(address.0 + start), size, whole).map(|(_, code)| code.len()).ok()
        };
        assert_eq!(code(0, 4, false), Some(4));
        assert_eq!(code(0, 4, true), Some(28));
        assert_eq!(code(0, 1000, false), Some(28));
        assert_eq!((code(27, 9, false), code(28, 1, false)), (Some(1), None));
        let (architecture, bytes) = saved.code(address, 2, false).unwrap();
        assert_eq!((architecture, bytes), (Architecture::X86_64, vec![0x90; 2]));
    }

    #[test]
    fn a_jitdump_names_its_source_files() {
        let dump = dump();
        let saved = SavedCode::open(&recorded(&dump, 0x7000_0004).0).unwrap();
        let named =
            ["/x.js", "/included.js", "/etc/passwd", ""].map(|file| saved.named_source(file).is_some());
        assert_eq!(named, [true, true, false, false]);
    }

    #[test]
    fn a_file_that_all_may_write_to_is_not_used() {
        let dump = dump();
        let (lib, _) = recorded(&dump, 0x7000_0004);
        fs::set_permissions(&lib.path, fs::Permissions::from_mode(0o666)).unwrap();
        let refused = SavedCode::open(&lib).unwrap_err().to_string();
        assert!(refused.contains("every user may write to it"), "{refused}");
        fs::set_permissions(&lib.path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(SavedCode::open(&lib).is_ok());
    }

    #[test]
    fn another_file_in_its_place_is_not_used() {
        let dump = dump();
        let (lib, _) = recorded(&dump, 0x7000_0004);
        let why = |lib: &Lib| SavedCode::open(lib).unwrap_err().to_string();
        let other = Lib { breakpad_id: lib.breakpad_id.replace("4D", "4E"), ..lib.clone() };
        assert!(why(&other).contains("another file"), "{}", why(&other));
        fs::remove_file(&lib.path).unwrap();
        assert!(why(&lib).contains("the file does not exist"), "{}", why(&lib));
        let own = Lib { path: "/proc/self/environ".into(), ..lib };
        assert!(SavedCode::open(&own).is_err());
    }

    #[test]
    fn a_perf_map_names_files_without_instructions() {
        let path = std::env::temp_dir().canonicalize().unwrap();
        let path = path.join(format!("nyquist-saved-{}.map", std::process::id()));
        fs::write(&path, "1000 10 JS:~f /y.js:1:2\n").unwrap();
        let id = id::of_map(nyquist_system::path_id(&path).unwrap()).breakpad();
        let lib = Lib { path: path.to_str().unwrap().into(), breakpad_id: id, ..Lib::default() };
        let saved = SavedCode::open(&lib).unwrap();
        assert_eq!(["/y.js", "/z.js"].map(|file| saved.named_source(file).is_some()), [true, false]);
        let refused = saved.code(RelativeAddress(0), 1, false).unwrap_err().to_string();
        assert!(refused.starts_with("a perf map has names and no instructions"), "{refused}");
        fs::remove_file(&path).unwrap();
    }
}
