//! The available files: those that the profile names for the lib, if they are allowed and texts, and no
//! others.

use std::fs;
use std::path::{Path, PathBuf};

use nyquist_object::RelativeAddress;
use nyquist_profile::{Func, Lib, Meta, Profile, ProfileBuilder, Source};
use nyquist_server::{
    AssemblyRequest, GeneratedCode, GeneratedLib, LibKey, ProfileSymbols, SourceRequest, SymbolSource as _,
};
use nyquist_symbols::{Disassembly, Finder, SourceFiles, special_source_path};

const ID: &str = "6C974EBE5232EE469D6B7847A670B2A90";

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A profile whose lib `prog` has a function in each of `files`, and whose lib `other` has none.
fn profile(files: &[&str]) -> Profile {
    let mut builder = ProfileBuilder::new(Meta::default());
    let lib = |name: &str| Lib {
        name: name.to_owned(),
        debug_name: name.to_owned(),
        path: format!("/proc/nonexistent/{name}"),
        breakpad_id: ID.to_owned(),
        ..Lib::default()
    };
    let prog = builder.add_lib(lib("prog"));
    builder.add_lib(lib("other"));
    for file in files {
        let filename = builder.intern_string(file);
        let source = builder.intern_source(Source { filename });
        let func = Func { source: Some(source), ..Func::new(filename, Some(prog)) };
        builder.intern_func(func);
    }
    builder.finish()
}

/// Requests the text of `file` of a lib, with all folders of these tests allowed; errors become their
/// message.
fn source(profile: &Profile, lib: &str, file: &str) -> Result<String, String> {
    ask(profile, lib, file, SourceFiles::default().allowing(env!("CARGO_TARGET_TMPDIR")))
}

fn ask(profile: &Profile, lib: &str, file: &str, allowed: SourceFiles) -> Result<String, String> {
    let lib = LibKey { debug_name: lib.to_owned(), breakpad_id: ID.to_owned() };
    let request = SourceRequest { lib, address: RelativeAddress(0), file: file.to_owned() };
    let symbols = ProfileSymbols::new(profile, Finder::default(), allowed);
    symbols.source(&request).map_err(|error| error.to_string())
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a path in UTF-8").to_owned()
}

/// The rest of the message without its file.
fn reason(error: &str, file: &str) -> String {
    let reason = error.strip_prefix(&format!("no source of {file}: "));
    reason.unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn a_file_of_the_profile_is_served_where_allowed() {
    let folder = folder("named");
    let file = path(&folder, "a.c");
    fs::write(&file, "int a;\n").unwrap();
    let profile = profile(&[&file]);
    assert_eq!(source(&profile, "prog", &file).unwrap(), "int a;\n");
    let moved = SourceFiles::default().moving(folder.to_str().unwrap(), folder.as_path());
    assert_eq!(ask(&profile, "prog", &file, moved).unwrap(), "int a;\n");
}

/// Any user can write a profile.
#[test]
fn the_profiles_word_alone_opens_no_file() {
    let folder = folder("word");
    let file = path(&folder, "a.c");
    fs::write(&file, "int a;\n").unwrap();
    for file in [&*file, "/etc/passwd"] {
        for allowed in [SourceFiles::default(), SourceFiles::default().allowing(folder.join("elsewhere"))] {
            let error = ask(&profile(&[file]), "prog", file, allowed).unwrap_err();
            let expected_reason =
                "no debug info on this machine names it; --source-dir DIR allows its folder";
            assert_eq!(reason(&error, file), expected_reason);
        }
    }
}

/// The viewer shows it in a tooltip, which has no room for many paths.
#[test]
fn a_lib_without_a_file_is_one_short_sentence() {
    let lib = LibKey { debug_name: "prog".to_owned(), breakpad_id: ID.to_owned() };
    let request =
        AssemblyRequest { lib, start: RelativeAddress(0x1000), size: 16, continue_until_function_end: false };
    let symbols = ProfileSymbols::new(&profile(&[]), Finder::default(), SourceFiles::default());
    let message = symbols.assembly(&request).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "the file of lib prog/{ID} is not available on this machine: no file of this identity was found"
        )
    );
}

#[test]
fn a_kernel_without_code_is_one_short_sentence() {
    let mut builder = ProfileBuilder::new(Meta::default());
    let lib = Lib {
        debug_name: "[kernel.kallsyms]".to_owned(),
        breakpad_id: ID.to_owned(),
        // Not the id of any running kernel.
        code_id: Some("be4e976c3252ee469d6b7847a670b2a90000000f".to_owned()),
        ..Lib::default()
    };
    let key = LibKey { debug_name: lib.debug_name.clone(), breakpad_id: lib.breakpad_id.clone() };
    builder.add_lib(lib);
    let symbols = ProfileSymbols::new(&builder.finish(), Finder::default(), SourceFiles::default());
    let request =
        AssemblyRequest { lib: key, start: RelativeAddress(0), size: 16, continue_until_function_end: true };
    let message = symbols.assembly(&request).unwrap_err().to_string();
    assert_eq!(message, "no code of this kernel is here: another kernel runs now");
}

/// Any file could be claimed to be a lib without an id.
#[test]
fn a_lib_without_an_id_is_no_lib() {
    let mut builder = ProfileBuilder::new(Meta::default());
    let path = std::env::current_exe().unwrap();
    let lib = Lib {
        debug_name: "prog".to_owned(),
        path: path.to_str().unwrap().to_owned(),
        breakpad_id: "no id".to_owned(),
        ..Lib::default()
    };
    builder.add_lib(lib);
    let symbols = ProfileSymbols::new(&builder.finish(), Finder::default(), SourceFiles::default());
    let lib = LibKey { debug_name: "prog".to_owned(), breakpad_id: "no id".to_owned() };
    let start = RelativeAddress(0x1000);
    assert_eq!(symbols.symbolicate(&lib, &[start]), None);
    let request = AssemblyRequest { lib, start, size: 16, continue_until_function_end: false };
    assert_eq!(symbols.assembly(&request).unwrap_err().to_string(), "the profile has no lib prog/no id");
}

#[test]
fn a_file_is_served_only_as_the_profile_spells() {
    let folder = folder("spelling");
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("a.c"), "int a;\n").unwrap();
    let (plain, dotted) = (path(&folder, "a.c"), path(&folder, "sub/../a.c"));
    assert_eq!(source(&profile(&[&dotted]), "prog", &dotted).unwrap(), "int a;\n");
    for (named, requested) in [(&plain, &dotted), (&dotted, &plain)] {
        assert!(source(&profile(&[named]), "prog", requested).is_err(), "{requested}");
    }
}

/// The folder of crates.io in a cargo home, and that of a company's registry.
const REGISTRIES: [&str; 2] = ["index.crates.io-1949cf8c6b5b557f", "own.example-1949cf8c6b5b557f"];

/// A crate's file in a registry of a cargo home: its path, and its name as a special path.
fn in_crate(home: &Path, registry: &str) -> (String, String) {
    let folder = home.join("registry/src").join(registry).join("a-1.0.0/src");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("lib.rs"), "fn a() {}\n").unwrap();
    (path(&folder, "lib.rs"), format!("cargo:{registry}:a-1.0.0:src/lib.rs"))
}

/// Names one file, like debug info on this machine.
struct Naming(Option<String>);

impl GeneratedCode for Naming {
    fn open(&self, _: &Lib) -> Option<Result<Box<dyn GeneratedLib>, String>> {
        Some(Ok(Box::new(Self(self.0.clone()))))
    }

    fn is_generated(&self, _: &Lib) -> bool {
        true
    }
}

impl GeneratedLib for Naming {
    fn named_source(&self, file: &str) -> Option<String> {
        self.0.clone().filter(|named| special_source_path(named) == special_source_path(file))
    }

    fn disassemble(&self, _: RelativeAddress, _: u32, _: bool) -> Result<Disassembly, String> {
        Err("there is none".to_owned())
    }
}

/// Requests a file that the profile names, and debug info too if `named` is given.
fn ask_named(named: Option<&str>, file: &str, files: SourceFiles) -> Result<String, String> {
    let symbols = ProfileSymbols::new(&profile(&[file]), Finder::default(), files);
    let symbols = symbols.with_generated_code(Naming(named.map(str::to_owned)));
    let lib = LibKey { debug_name: "prog".to_owned(), breakpad_id: ID.to_owned() };
    let request = SourceRequest { lib, address: RelativeAddress(0), file: file.to_owned() };
    symbols.source(&request).map_err(|error| error.to_string())
}

#[test]
fn a_crates_file_is_where_debug_info_says() {
    let home = folder("crate");
    for registry in REGISTRIES {
        let (path, special) = in_crate(&home, registry);
        let here = ask_named(Some(&path), &path, SourceFiles::default());
        assert_eq!(here.unwrap(), "fn a() {}\n");
        if registry == REGISTRIES[0] {
            // Another cargo home than that of the build, and none.
            for home in [Some(PathBuf::from("/proc/nonexistent")), None] {
                let files = SourceFiles::default().with_rust(None, home);
                assert_eq!(ask_named(Some(&path), &special, files).unwrap(), "fn a() {}\n");
            }
        }
    }
}

#[test]
fn a_special_path_alone_opens_no_file() {
    let home = folder("unnamed-crate");
    let files = || SourceFiles::default().with_rust(None, Some(home.clone()));
    let (path, special) = in_crate(&home, REGISTRIES[1]);
    for file in [&*path, &special] {
        assert!(ask_named(None, file, files()).is_err(), "{file}");
        assert!(ask_named(Some("/src/a.c"), file, files()).is_err(), "{file}");
    }
    fs::write(home.join("credentials.toml"), "secret").unwrap();
    for file in ["../../../../credentials.toml", "src/../../../../../credentials.toml"] {
        for registry in REGISTRIES {
            let special = format!("cargo:{registry}:a-1.0.0:{file}");
            assert!(ask_named(None, &special, files()).is_err(), "{special}");
        }
    }
    // A name in debug info does not permit reading other files with a similar path.
    let (path, _) = in_crate(&home, REGISTRIES[0]);
    let other = format!("/proc/nonexistent{path}");
    assert!(ask_named(Some(&other), &path, SourceFiles::default()).is_err());
}

/// Published text is shown, whatever names it.
#[test]
fn a_crate_of_crates_io_is_in_cargos_home() {
    let home = folder("published-crate");
    let (_, special) = in_crate(&home, REGISTRIES[0]);
    let files = || SourceFiles::default().with_rust(None, Some(home.clone()));
    assert_eq!(ask(&profile(&[&special]), "prog", &special, files()).unwrap(), "fn a() {}\n");
    let built_elsewhere = special.replace("1949cf8c6b5b557f", "6f17d22bba15001f");
    assert_eq!(ask(&profile(&[&built_elsewhere]), "prog", &built_elsewhere, files()).unwrap(), "fn a() {}\n");
    assert!(ask(&profile(&["/src/a.c"]), "prog", &special, files()).is_err(), "no one names it");
}

#[test]
fn either_name_of_a_file_is_that_of_the_profile() {
    let home = folder("both-names");
    let (path, special) = in_crate(&home, REGISTRIES[0]);
    let files = || SourceFiles::default().allowing(home.as_path()).with_rust(None, Some(home.clone()));
    for (named, requested) in [(&path, &special), (&special, &path), (&special, &special)] {
        assert_eq!(
            ask(&profile(&[named]), "prog", requested, files()).unwrap(),
            "fn a() {}\n",
            "{named} {requested}"
        );
    }
}

#[test]
fn no_other_file_is_served_however_it_is_spelled() {
    let folder = folder("others");
    let (named, secret) = (path(&folder, "a.c"), path(&folder, "secret"));
    fs::write(&named, "int a;\n").unwrap();
    fs::write(&secret, "secret").unwrap();
    let profile = profile(&[&named]);
    let tricks = [
        format!("{named}/../secret"),
        format!("{named}\0"),
        format!("file://{named}"),
        format!(" {named}"),
        format!("/{named}"),
        secret,
        String::new(),
        "/etc/passwd".to_owned(),
        "/proc/self/environ".to_owned(),
    ];
    for file in tricks {
        assert!(source(&profile, "prog", &file).is_err(), "{file:?}");
    }
}

#[test]
fn a_file_that_another_lib_names_is_not_served() {
    let folder = folder("lib");
    let file = path(&folder, "a.c");
    fs::write(&file, "int a;\n").unwrap();
    let profile = profile(&[&file]);
    assert!(source(&profile, "other", &file).is_err());
    let unknown = source(&profile, "unknown", &file).unwrap_err();
    assert_eq!(unknown, format!("the profile has no lib unknown/{ID}"));
}

#[test]
fn a_file_that_is_gone_is_an_error_that_says_so() {
    let file = path(&folder("gone"), "a.c");
    let error = source(&profile(&[&file]), "prog", &file).unwrap_err();
    assert!(reason(&error, &file).starts_with("No such file"), "{error}");
}

#[test]
fn what_is_no_text_file_is_not_served() {
    let folder = folder("unfit");
    let (binary, long) = (path(&folder, "binary"), path(&folder, "long"));
    fs::write(&binary, "a\0b").unwrap();
    fs::File::create(&long).unwrap().set_len((32 << 20) + 1).unwrap();
    let check = |file: &str, expected: &str| {
        let error = source(&profile(&[file]), "prog", file).unwrap_err();
        assert_eq!(reason(&error, file), expected);
    };
    check(&binary, "it is not text");
    check(&long, "it is too long");
    check(&path(&folder, ""), "it is not a regular file");
    check("Cargo.toml", "its folder is not known; --source-map FROM=TO tells where it is");
    check("../nyquist-server/Cargo.toml", "its folder is not known; --source-map FROM=TO tells where it is");
    check("/tmp/a\u{1b}[31m.c", "its path has control characters");
}

#[test]
#[cfg(target_os = "linux")]
fn devices_and_kernel_files_are_not_read() {
    let check = |file: &str, expected: Result<&str, &str>| {
        let text = ask(&profile(&[file]), "prog", file, SourceFiles::default().allowing("/"));
        assert_eq!(text.as_deref().map_err(|error| error.rsplit(": ").next().unwrap()), expected, "{file}");
    };
    check("/dev/zero", Err("it is not a regular file"));
    check("/proc/self/environ", Ok(""));
}

#[test]
fn old_comments_not_in_utf_8_hide_nothing_else() {
    let folder = folder("latin1");
    let file = path(&folder, "a.c");
    fs::write(&file, b"/* caf\xe9 */ int a;\n").unwrap();
    assert_eq!(source(&profile(&[&file]), "prog", &file).unwrap(), "/* caf\u{fffd} */ int a;\n");
}
