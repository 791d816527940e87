//! Profiles of macOS programs. Their names and lines come from `.dSYM` bundles, object files and symbol
//! tables. The programs are made here by clang, lld and dsymutil, and every address is compared with
//! `llvm-symbolizer`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::made_profile;
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("lines_and_inlined_calls_of_a_dsym_are_llvms", dsym),
    Test::new("object_files_give_what_the_dsym_gives", object_files),
    Test::new("a_dsym_of_another_build_is_not_used", other_dsym),
    Test::new("a_stripped_program_has_exports_and_stand_ins", stripped),
    Test::new("of_a_universal_file_the_recorded_one_is_taken", universal),
    Test::new("profiles_of_other_profilers_get_their_names", profilers),
    Test::new("doctor_shows_what_files_of_macos_hold", doctor),
];

/// The address at which lld places a program.
const BASE: u64 = 0x1_0000_0000;

const ARCHITECTURES: [&str; 2] = ["x86_64", "arm64"];

/// A linked program.
struct Program {
    folder: PathBuf,
    image: PathBuf,
    architecture: &'static str,
    /// The UUID as the profile writes it.
    uuid: String,
    /// The addresses of the code, counted from the image base.
    addresses: Vec<u64>,
}

/// The answer for an address: the function, file and line of each frame, innermost first.
type Chain = Vec<(String, String, u64)>;

/// Runs a tool. Skips the test if the tool is missing.
fn tool(command: &mut Command) -> Result<String, Stop> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stderr(Stdio::piped()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(anyhow::anyhow!("{command:?}: {}: {printed}", output.status).into())
        }
        Err(_) => skip(format_args!("{name} is not installed")),
    }
}

/// A tool of LLVM. Some tools have no name without a version in the search path. They are in the folder of
/// llvm-symbolizer or of lld-link, which may be of other versions.
fn llvm(name: &str) -> Command {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let find = |program: &str| {
        let mut known = std::env::split_paths(&folders).map(|folder| folder.join(program));
        let real = known.find_map(|path| path.canonicalize().ok())?;
        real.parent().map(|folder| folder.join(name)).filter(|path| path.is_file())
    };
    let beside = ["llvm-symbolizer", "lld-link"].into_iter().find_map(find);
    beside.map_or_else(|| Command::new(name), Command::new)
}

fn compile(folder: &Path, architecture: &str, level: &str, source: &str) -> Result<(), Stop> {
    let target = format!("--target={architecture}-apple-macos11");
    let options = [&*target, level, "-g", "-fno-stack-protector", "-fno-exceptions", "-c", "-o"];
    let object = Path::new(source).with_extension("o");
    let source = crate::paths::root().join("workloads/macos").join(source);
    let mut command = Command::new("clang");
    tool(command.args(options).arg(object).arg(source).current_dir(folder)).map(drop)
}

/// Compiles and links the program from two object files and an archive with one.
fn build(test: &Context<'_>, name: &str, architecture: &'static str, level: &str) -> Result<Program, Stop> {
    let folder = test.path(name);
    fs::create_dir_all(&folder).context("no folder")?;
    for source in ["program.cc", "more.c", "member.c"] {
        compile(&folder, architecture, level, source)?;
    }
    tool(llvm("llvm-ar").args(["rcU", "libmember.a", "member.o"]).current_dir(&folder))?;
    fs::remove_file(folder.join("member.o")).context("no object file")?;
    let options =
        ["-arch", architecture, "-platform_version", "macos", "11", "11", "-undefined", "dynamic_lookup"];
    let files = ["-o", "program", "program.o", "more.o", "libmember.a"];
    tool(llvm("ld64.lld").args(options).args(files).current_dir(&folder))?;
    let image = folder.join("program");
    let uuid = tool(llvm("llvm-dwarfdump").arg("--uuid").arg(&image))?;
    let uuid = uuid.split_whitespace().nth(1).context("no UUID")?.replace('-', "");
    let addresses = code_addresses(&image, "__text")?;
    Ok(Program { folder, image, architecture, uuid, addresses })
}

/// The addresses of a section's bytes, from the headers as llvm-readobj prints them.
fn code_addresses(image: &Path, section: &str) -> Result<Vec<u64>, Stop> {
    let output = tool(llvm("llvm-readobj").arg("--sections").arg(image))?;
    let text = output.split_once(&format!("Name: {section} ")).context("no such section")?.1;
    let number = |field: &str| -> Result<u64> {
        let digits = text.split_once(field).and_then(|(_, rest)| rest.split_whitespace().next());
        let digits = digits.and_then(|digits| digits.strip_prefix("0x")).context("no number")?;
        Ok(u64::from_str_radix(digits, 16)?)
    };
    let (start, size) = (number("Address: ")? - BASE, number("Size: ")?);
    Ok((start..start + size).collect())
}

impl Program {
    /// Makes the program's `.dSYM` bundle.
    fn add_dsym(&self) -> Result<PathBuf, Stop> {
        tool(llvm("dsymutil").arg("program").current_dir(&self.folder))?;
        Ok(self.folder.join("program.dSYM"))
    }

    /// The entry in `libs` that samply writes on macOS.
    fn lib(&self, path: &Path) -> Value {
        json!({
            "name": "program", "path": path, "debugName": "program", "debugPath": path,
            "breakpadId": format!("{}0", self.uuid), "codeId": self.uuid, "arch": self.architecture,
        })
    }

    /// The answers of llvm-symbolizer for each address. It reads the `.dSYM` bundle beside the program.
    fn oracle(&self) -> Result<Vec<Chain>, Stop> {
        let mut command = llvm("llvm-symbolizer");
        command.args(["--output-style=JSON", "--inlines", "--demangle", "--obj"]).arg(&self.image);
        command.args(self.addresses.iter().map(|address| format!("{:#x}", BASE + address)));
        let output = tool(&mut command)?;
        let answers = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
        let answers: Vec<Value> = answers.collect::<Result<_, _>>().context("no JSON")?;
        // Some versions print one answer on each line, others print all of them as an array.
        let lists = answers.into_iter().map(|answer| match answer {
            Value::Array(answers) => answers,
            answer => vec![answer],
        });
        let frame = |frame: &Value| {
            let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
            (plain(&text("FunctionName")), text("FileName"), frame["Line"].as_u64().unwrap_or(0))
        };
        let chain = |answer: Value| answer["Symbol"].as_array().into_iter().flatten().map(frame).collect();
        Ok(lists.flatten().map(chain).collect())
    }
}

/// A name without its arguments.
fn plain(name: &str) -> String {
    let name = name.replace("'lambda'", "{lambda").replace("(anonymous namespace)", "`anonymous namespace'");
    name.split('(').next().unwrap_or_default().trim().to_owned()
}

/// The names in a profile for each of its samples, each of which has one address.
fn named(test: &Context<'_>, profile: &Value, options: &[&str]) -> Result<Vec<Chain>, Stop> {
    let file = test.fresh("profile.json");
    fs::write(&file, profile.to_string()).context("no profile")?;
    chains_of(test, &file, options)
}

fn chains_of(test: &Context<'_>, file: &Path, options: &[&str]) -> Result<Vec<Chain>, Stop> {
    let out = test.fresh("named.json.gz");
    let call = test.nyquist(&["import", "-s", "--no-cache", "-o"]).path(&out).args(options);
    call.path(file).run()?.succeeded()?;
    let profile = Profile::read(&out)?;
    let chain = |stack: Vec<&super::profile::Frame>| {
        let frame = |frame: &&super::profile::Frame| {
            let name = if frame.function.starts_with("0x") { String::new() } else { plain(&frame.function) };
            (name, frame.file.clone().unwrap_or_default(), frame.line.unwrap_or(0))
        };
        stack.iter().rev().map(frame).collect()
    };
    Ok(profile.stacks().map(|(stack, _)| chain(stack)).collect())
}

/// Compares every frame of every address with those from a `.dSYM`. The line table of an object file covers
/// the padding between functions, and `dsymutil` leaves it out. There, only the names are equal.
fn expect_same(program: &Program, found: &[Chain], expected: &[Chain], is_of_objects: bool) -> Verdict {
    expect_eq("addresses", found.len(), expected.len())?;
    let functions: BTreeSet<_> =
        expected.iter().flatten().map(|(function, _, _)| function.as_str()).collect();
    let depth = expected.iter().map(Vec::len).max().unwrap_or(0);
    expect(functions.len() >= 9, format_args!("llvm-symbolizer has only {functions:?}"))?;
    expect(expected.iter().flatten().any(|(_, _, line)| *line > 0), "llvm-symbolizer has no lines")?;
    expect(depth > 1 || functions.contains("shapes::Polygon::offset"), "nothing is inlined")?;
    let mut padding = 0;
    for ((address, found), expected) in program.addresses.iter().zip(found).zip(expected) {
        let is_padding = matches!((&**found, &**expected), ([(name, ..)], [(same, file, 0)]) if name == same && file.is_empty());
        padding += usize::from(is_padding && found != expected);
        let is_same = found == expected || (is_of_objects && is_padding);
        expect(is_same, format_args!("{address:#x}: found {found:?}, wanted {expected:?}"))?;
    }
    expect(padding < 16 * functions.len(), format_args!("{padding} bytes have lines of padding"))
}

/// The names of the functions.
fn functions(chains: &[Chain]) -> BTreeSet<String> {
    chains.iter().flatten().map(|(function, _, _)| function.clone()).collect()
}

fn dsym(test: &Context<'_>) -> Verdict {
    for architecture in ARCHITECTURES {
        for level in ["-O0", "-O2"] {
            let program = build(test, &format!("{architecture}{level}"), architecture, level)?;
            let bundle = program.add_dsym()?;
            let expected = program.oracle()?;
            let profile = made_profile::of(&program.addresses, &program.lib(&program.image));
            expect_same(&program, &named(test, &profile, &[])?, &expected, false)?;
            // The bundle is moved to a folder of symbols, and the program's path does not exist, as in a
            // recording from another machine.
            let symbols = program.folder.join("symbols");
            fs::create_dir(&symbols).context("no folder")?;
            fs::rename(bundle, symbols.join("program.dSYM")).context("no bundle")?;
            let profile =
                made_profile::of(&program.addresses, &program.lib(Path::new("/Applications/program")));
            let found = named(test, &profile, &["--symbol-dir", &symbols.display().to_string()])?;
            expect_same(&program, &found, &expected, false)?;
        }
    }
    Ok(())
}

fn object_files(test: &Context<'_>) -> Verdict {
    for architecture in ARCHITECTURES {
        let program = build(test, architecture, architecture, "-O2")?;
        let bundle = program.add_dsym()?;
        let expected = program.oracle()?;
        fs::remove_dir_all(bundle).context("no bundle")?;
        let profile = made_profile::of(&program.addresses, &program.lib(&program.image));
        expect_same(&program, &named(test, &profile, &[])?, &expected, true)?;
        // After a new build, an object file does not belong to the program.
        let object = program.folder.join("more.o");
        let file = fs::File::options().append(true).open(&object).context("no object file")?;
        file.set_modified(std::time::UNIX_EPOCH).context("no time")?;
        let found = named(test, &profile, &[])?;
        let lines = |function: &str| found.iter().flatten().any(|frame| frame.0 == function && frame.2 > 0);
        expect(lines("shapes::Polygon::area"), "the other object file is not used")?;
        expect(lines("in_archive"), "the archive is not used")?;
        expect(!lines("other_file"), "an object file that was modified is used")?;
        expect(functions(&found).contains("other_file"), "the symbol table's name is not used")?;
    }
    Ok(())
}

fn other_dsym(test: &Context<'_>) -> Verdict {
    let (program, other) = (build(test, "this", "arm64", "-O2")?, build(test, "that", "arm64", "-O1")?);
    fs::rename(other.add_dsym()?, program.folder.join("program.dSYM")).context("no bundle")?;
    for object in ["program.o", "more.o", "libmember.a"] {
        fs::remove_file(program.folder.join(object)).context("no object file")?;
    }
    let file = test.fresh("profile.json");
    let profile = made_profile::of(&program.addresses, &program.lib(&program.image));
    fs::write(&file, profile.to_string()).context("no profile")?;
    let found = named(test, &profile, &[])?;
    expect(found.iter().flatten().all(|frame| frame.2 == 0), "lines of another build are shown")?;
    expect(functions(&found).contains("shapes::Polygon::area"), "the symbol table is not used")?;
    let stderr = test.nyquist(&["report", "-v", "--no-cache"]).path(&file).run()?.succeeded()?.stderr;
    expect_contains("-v", &stderr, "DWARF/program: another file (UUID ")?;
    expect_contains("-v", &stderr, "more.o: no such file")
}

fn stripped(test: &Context<'_>) -> Verdict {
    let program = build(test, "stripped", "arm64", "-O2")?;
    let lines = tool(llvm("llvm-nm").arg("--defined-only").arg(&program.image))?;
    let symbols = lines.lines().filter(|line| line.contains(" t ") || line.contains(" T ")).count();
    tool(llvm("llvm-strip").arg(&program.image))?;
    for file in ["program.o", "more.o", "libmember.a"] {
        fs::remove_file(program.folder.join(file)).context("no object file")?;
    }
    let stubs = code_addresses(&program.image, "__stubs")?;
    let addresses: Vec<u64> = program.addresses.iter().chain(&stubs).copied().collect();
    let profile = made_profile::of(&addresses, &program.lib(&program.image));
    let found = functions(&named(test, &profile, &[])?);
    for name in ["main", "other_file", "shapes::Polygon::area", "of_a_library@plt"] {
        expect(found.contains(name), format_args!("{name} is not among {found:?}"))?;
    }
    expect(found.iter().any(|name| name.starts_with("fun_")), format_args!("no stand-ins: {found:?}"))?;
    expect(found.len() <= symbols + 1, format_args!("more functions than there were: {found:?}"))
}

fn universal(test: &Context<'_>) -> Verdict {
    let folder = test.path("both");
    fs::create_dir_all(&folder).context("no folder")?;
    let mut programs = Vec::new();
    for architecture in ARCHITECTURES {
        programs.push(build(test, architecture, architecture, "-O2")?);
    }
    let join = |files: Vec<PathBuf>, joined: &Path| {
        tool(llvm("llvm-lipo").arg("-create").args(files).arg("-output").arg(joined))
    };
    join(programs.iter().map(|program| program.image.clone()).collect(), &folder.join("program"))?;
    for program in &programs {
        program.add_dsym()?;
        let profile = made_profile::of(&program.addresses, &program.lib(&folder.join("program")));
        expect_same(program, &named(test, &profile, &[])?, &program.oracle()?, true)?;
    }
    let output = test.nyquist(&["doctor"]).path(&folder.join("program")).run()?.succeeded()?.stdout_text();
    for part in ["code for x86_64:", "code for arm64:"] {
        expect_contains("doctor", &output, part)?;
    }
    // The bundle of a universal program is also universal.
    let inner = "program.dSYM/Contents/Resources/DWARF/program";
    let bundle = folder.join(inner);
    fs::create_dir_all(bundle.parent().context("no folder")?).context("no folder")?;
    join(programs.iter().map(|program| program.folder.join(inner)).collect(), &bundle)?;
    for program in &programs {
        fs::remove_file(program.folder.join("program.o")).context("no object file")?;
        let profile = made_profile::of(&program.addresses, &program.lib(&folder.join("program")));
        expect_same(program, &named(test, &profile, &[])?, &program.oracle()?, false)?;
    }
    Ok(())
}

/// A table as Instruments exports it, with one sample for each address.
fn instruments(program: &Program) -> String {
    let mut uuid = program.uuid.clone();
    for at in [8, 13, 18, 23] {
        uuid.insert(at, '-');
    }
    let binary = format!(
        r#"<binary id="2" name="program" UUID="{uuid}" arch="arm64" load-addr="0x104000000" path="/Applications/program"/>"#
    );
    let rows = program.addresses.iter().step_by(4).enumerate().map(|(number, address)| {
        let binary = if number == 0 { &binary } else { r#"<binary ref="2"/>"# };
        let (time, address) = (number as u64 * 1_000_000, 0x1_0400_0000 + address);
        format!(
            r#"<row><sample-time>{time}</sample-time><thread fmt="main 0x1 (program, pid: 7)"><tid>1</tid><process fmt="program (7)"><pid>7</pid></process></thread><thread-state fmt="Running">Running</thread-state><weight>1000000</weight><backtrace><frame name="{address:#x}" addr="{address:#x}">{binary}</frame></backtrace></row>"#
        )
    });
    let columns = ["sample-time", "thread", "thread-state", "weight", "backtrace"];
    let columns: String = columns.map(|name| format!("<col><mnemonic>{name}</mnemonic></col>")).concat();
    format!(
        r#"<?xml version="1.0"?><trace-query-result><node><schema name="time-profile">{columns}</schema>{}</node></trace-query-result>"#,
        rows.collect::<String>()
    )
}

fn profilers(test: &Context<'_>) -> Verdict {
    let program = build(test, "program", "arm64", "-O2")?;
    program.add_dsym()?;
    let expected = functions(&program.oracle()?);
    let symbols = program.folder.display().to_string();
    let options = ["--symbol-dir", &symbols];
    let expect_names = |what: &str, file: &Path| -> Verdict {
        let found = functions(&chains_of(test, file, &options)?);
        let missing: Vec<_> = expected.difference(&found).collect();
        expect(missing.is_empty(), format_args!("{what}: {missing:?} are not among {found:?}"))
    };
    let elsewhere = Path::new("/Applications/program");
    let samply = made_profile::of(&program.addresses, &program.lib(elsewhere));
    // Firefox on macOS writes no code id.
    let mut firefox = samply.clone();
    firefox["libs"][0]["codeId"] = Value::Null;
    for (what, profile) in [("samply", &samply), ("firefox", &firefox)] {
        let file = test.path(what);
        fs::write(&file, profile.to_string()).context("no profile")?;
        expect_names(what, &file)?;
    }
    let pprof = test.path("profile.pb.gz");
    let call = test.nyquist(&["export", "--no-cache", "-o"]).path(&pprof);
    call.path(&test.path("samply")).run()?.succeeded()?;
    expect_names("pprof", &pprof)?;
    let table = test.path("table.xml");
    fs::write(&table, instruments(&program)).context("no table")?;
    expect_names("Instruments", &table)
}

fn doctor(test: &Context<'_>) -> Verdict {
    let program = build(test, "program", "x86_64", "-O2")?;
    let describe = |path: &Path| -> Result<String> {
        Ok(test.nyquist(&["doctor", "-v"]).path(path).run()?.succeeded()?.stdout_text())
    };
    let output = describe(&program.image)?;
    let digits = &program.uuid;
    let uuid = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-");
    for part in
        ["from the object files that it was linked from (3)", "__unwind_info", &format!("UUID {uuid}")]
    {
        expect_contains("of the image", &output, part)?;
    }
    fs::remove_file(program.folder.join("libmember.a")).context("no archive")?;
    let output = describe(&program.image)?;
    expect_contains("without the archive", &output, "libmember.a: no such file")?;
    expect_contains("without the archive", &output, "run dsymutil")?;
    let inner = program.add_dsym()?.join("Contents/Resources/DWARF/program");
    expect_contains("with the bundle", &describe(&program.image)?, &format!("{} (DWARF)", inner.display()))?;
    expect_contains("of the bundle", &describe(&inner)?, &format!("UUID {uuid}"))
}
