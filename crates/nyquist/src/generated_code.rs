//! Code generated at run time, for the server, from the jitdumps and perf maps that are still
//! on this machine.

use nyquist_convert::SavedCode;
use nyquist_object::RelativeAddress;
use nyquist_profile::Lib;
use nyquist_server::{GeneratedCode, GeneratedLib};
use nyquist_symbols::{Disassembly, disassemble_code};

/// Finds jitdumps and perf maps by their paths in the profile.
pub(crate) struct SideFiles;

impl GeneratedCode for SideFiles {
    fn open(&self, lib: &Lib) -> Option<Result<Box<dyn GeneratedLib>, String>> {
        let opened = SavedCode::is_of(lib).then(|| SavedCode::open(lib))?;
        Some(match opened {
            Ok(code) => Ok(Box::new(SideFile(code))),
            Err(why) => Err(why.to_string()),
        })
    }

    fn is_generated(&self, lib: &Lib) -> bool {
        SavedCode::is_of(lib)
    }
}

/// A jitdump or a perf map.
struct SideFile(SavedCode);

impl GeneratedLib for SideFile {
    fn named_source(&self, file: &str) -> Option<String> {
        self.0.named_source(file)
    }

    fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, String> {
        let code = self.0.code(start, size, until_function_end);
        let (architecture, bytes) = code.map_err(|why| why.to_string())?;
        disassemble_code(architecture, &bytes, start).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Func, Meta, ProfileBuilder, Source};
    use nyquist_server::{AssemblyRequest, LibKey, ProfileSymbols, SourceRequest, SymbolSource as _};
    use nyquist_symbols::{Finder, SourceFiles};
    use std::fs;
    use std::path::Path;

    /// The id that results from the header below.
    const ID: &str = "4A49544F0000004D003E0000000000050";

    /// A jitdump of process 77 with three instructions of a function in a source file.
    fn dump(source: &str) -> Vec<u8> {
        let name = format!("JS:*spin {source}:1:2\0");
        let code = [0x90, 0x0f, 0x0b, 0xc3];
        let start: Vec<u8> =
            [0x4a69_5444_u32, 1, 40, 62, 0, 77].iter().flat_map(|it| it.to_le_bytes()).collect();
        let size = (16 + 40 + name.len() + code.len()) as u32;
        let prefix = [&0_u32.to_le_bytes()[..], &size.to_le_bytes(), &9_u64.to_le_bytes()].concat();
        let fields: Vec<u8> = [0_u64, 0x1000, 0x1000, 4, 1].iter().flat_map(|it| it.to_le_bytes()).collect();
        let header = [start, [5_u64, 0].iter().flat_map(|it| it.to_le_bytes()).collect()].concat();
        [&header[..], &prefix, &fields, name.as_bytes(), &code].concat()
    }

    /// The server's symbols for a jitdump at a path, with a profile that names these source files.
    fn symbols(path: &Path, sources: &[&str]) -> ProfileSymbols {
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib {
            name: "jit-77.dump".into(),
            path: path.to_str().unwrap().into(),
            debug_name: "jit-77.dump".into(),
            breakpad_id: ID.into(),
            ..Lib::default()
        });
        for file in sources {
            let filename = builder.intern_string(file);
            let source = Some(builder.intern_source(Source { filename }));
            builder.intern_func(Func { source, ..Func::new(filename, Some(lib)) });
        }
        let symbols = ProfileSymbols::new(&builder.finish(), Finder::default(), SourceFiles::default());
        symbols.with_generated_code(SideFiles)
    }

    fn key() -> LibKey {
        LibKey { debug_name: "jit-77.dump".into(), breakpad_id: ID.into() }
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux has jitdumps")]
    fn made_codes_instructions_and_source_are_served() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("nyquist-made-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [path, script, other] = ["jit-77.dump", "spin.js", "secret"].map(|name| folder.join(name));
        let [script, other] = [&script, &other].map(|path| path.to_str().unwrap());
        fs::write(script, "let spin;\n").unwrap();
        fs::write(other, "secret\n").unwrap();
        let bytes = dump(script);
        fs::write(&path, &bytes).unwrap();

        let symbols = symbols(&path, &[script, other]);
        let start = RelativeAddress(bytes.len() as u32 - 4);
        let request =
            |size, whole| AssemblyRequest { lib: key(), start, size, continue_until_function_end: whole };
        let text = |size, whole| -> Vec<String> {
            let assembly = symbols.assembly(&request(size, whole)).unwrap();
            assembly.instructions.into_iter().map(|one| one.text).collect()
        };
        assert_eq!(text(4, false), ["nop", "ud2", "ret"]);
        assert_eq!(text(1, true), ["nop", "ud2", "ret"]);
        let source = |file: &str| {
            let request = SourceRequest { lib: key(), address: start, file: file.into() };
            symbols.source(&request).map_err(|error| error.to_string())
        };
        assert_eq!(source(script).unwrap(), "let spin;\n");
        // The profile names it, but no trusted file on this machine does.
        let refused = source(other).unwrap_err();
        assert!(refused.contains("no debug info on this machine names it"), "{refused}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_jitdump_that_is_gone_is_reported() {
        let symbols = symbols(Path::new("/proc/nonexistent/jit-77.dump"), &[]);
        let start = RelativeAddress(0);
        let request = AssemblyRequest { lib: key(), start, size: 1, continue_until_function_end: false };
        let refused = symbols.assembly(&request).unwrap_err().to_string();
        assert!(
            refused.contains("/proc/nonexistent/jit-77.dump is not used: the file does not exist"),
            "{refused}"
        );
    }
}
