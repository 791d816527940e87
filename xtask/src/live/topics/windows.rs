//! Profiles of Windows programs. Their names come from PDBs, Breakpad symbol files and DWARF. The programs
//! are made here by cross compilers, and the names are compared with `llvm-symbolizer`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::file_server::FileServer;
use super::made_profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_profile_gets_its_names_from_a_pdb", names_from_pdb),
    Test::new("a_pdb_of_another_build_is_not_used", other_pdb),
    Test::new("a_profile_gets_its_names_from_a_breakpad_file", names_from_breakpad),
    Test::new("names_come_from_servers_too", names_from_servers),
    Test::new("a_program_of_mingw_has_its_own_debug_info", mingw),
    Test::new("doctor_shows_what_files_of_windows_hold", doctor),
];

/// An image and the files beside it, made by clang and lld.
struct Program {
    folder: PathBuf,
    image: PathBuf,
    pdb: PathBuf,
}

/// Runs a tool. Skips the test if the tool is missing.
fn tool(command: &mut Command) -> Result<String, Stop> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(anyhow::anyhow!("{command:?}: {}", output.status).into()),
        Err(_) => skip(format_args!("{name} is not installed")),
    }
}

fn sources() -> [(PathBuf, &'static str); 2] {
    let folder = crate::paths::root().join("workloads/windows");
    [(folder.join("program.cc"), "program.obj"), (folder.join("more.c"), "more.obj")]
}

fn build(test: &Context<'_>, name: &str, level: &str) -> Result<Program, Stop> {
    let folder = test.path(name);
    fs::create_dir_all(&folder).context("no folder")?;
    for (source, object) in sources() {
        let options =
            ["--target=x86_64-windows-msvc", "-fno-rtti", level, "-g", "-gcodeview", "-c", "-o", object];
        tool(Command::new("clang").args(options).arg(source).current_dir(&folder))?;
    }
    let options =
        ["/nodefaultlib", "/entry:mainCRTStartup", "/subsystem:console", "/debug", "/out:program.exe"];
    tool(Command::new("lld-link").args(options).args(["program.obj", "more.obj"]).current_dir(&folder))?;
    let (image, pdb) = (folder.join("program.exe"), folder.join("program.pdb"));
    Ok(Program { folder, image, pdb })
}

/// The code id and the debug id that `doctor` prints.
fn ids(test: &Context<'_>, image: &Path) -> Result<(String, String)> {
    let output = test.nyquist(&["doctor"]).path(image).run()?.succeeded()?.stdout_text();
    let word = |before: &str| {
        let after = output.split_once(before)?.1;
        after.split([',', ' ', '\n']).next().map(str::to_owned)
    };
    word("code id ").zip(word("debug id ")).with_context(|| format!("no ids: {output}"))
}

/// The addresses of the code's bytes, from the headers as llvm-readobj prints them.
fn code_addresses(image: &Path) -> Result<Vec<u64>, Stop> {
    let output = tool(Command::new("llvm-readobj").arg("--sections").arg(image))?;
    let text = output.split_once("Name: .text").context("no .text")?.1;
    let number = |field: &str| -> Result<u64> {
        let digits = text.split_once(field).and_then(|(_, rest)| rest.split_whitespace().next());
        let digits = digits.and_then(|digits| digits.strip_prefix("0x")).context("no number")?;
        Ok(u64::from_str_radix(digits, 16)?)
    };
    let (start, size) = (number("VirtualAddress: ")?, number("VirtualSize: ")?);
    Ok((start..start + size).collect())
}

/// A profile as a recorder on Windows saves it, with Windows paths, and addresses instead of names.
fn profile(addresses: &[u64], (code_id, debug_id): &(String, String)) -> Value {
    made_profile::of(
        addresses,
        &json!({
            "name": "program.exe", "path": "C:\\build\\program.exe", "debugName": "program.pdb",
            "debugPath": "C:\\build\\program.pdb", "breakpadId": debug_id, "codeId": code_id, "arch": "x86_64",
        }),
    )
}

/// The names in a report of the profile, without arguments, including inlined functions.
fn reported(test: &Context<'_>, profile: &Value, symbols: &Path) -> Result<BTreeSet<String>, Stop> {
    reported_with(test, profile, &["--symbol-dir", &symbols.display().to_string()])
}

/// The same, with options that say where symbols are looked up.
fn reported_with(test: &Context<'_>, profile: &Value, options: &[&str]) -> Result<BTreeSet<String>, Stop> {
    let file = test.fresh("profile.json");
    fs::write(&file, profile.to_string()).context("no profile")?;
    let report =
        test.nyquist(&["report", "--functions", "--limit", "0", "--full-names", "--json"]).args(options);
    let output = report.path(&file).run()?.succeeded()?.stdout_text();
    let mut names = BTreeSet::new();
    let mut open = vec![serde_json::from_str(&output).context("no JSON")?];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(mut fields) => {
                names.extend(fields.remove("function").as_ref().and_then(Value::as_str).map(plain));
                open.extend(fields.into_iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    Ok(names)
}

/// A name without its arguments.
fn plain(name: &str) -> String {
    let name = name.replace("(anonymous namespace)", "`anonymous namespace'");
    name.split('(').next().unwrap_or_default().trim().to_owned()
}

/// The names that llvm-symbolizer prints for all frames of all addresses.
fn oracle(image: &Path, addresses: &[u64]) -> Result<BTreeSet<String>, Stop> {
    let base = tool(Command::new("llvm-readobj").arg("--file-headers").arg(image))?;
    let base = base.split_once("ImageBase: 0x").and_then(|(_, rest)| rest.split_whitespace().next());
    let base = u64::from_str_radix(base.context("no image base")?, 16).context("no number")?;
    let mut command = Command::new("llvm-symbolizer");
    command.args(["--output-style=JSON", "--inlines", "--demangle", "--obj"]).arg(image);
    command.args(addresses.iter().map(|address| format!("{:#x}", base + address)));
    let output = tool(&mut command)?;
    let answers = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
    let mut names = BTreeSet::new();
    let answers: Vec<Value> = answers.collect::<Result<_, _>>().context("no JSON")?;
    // Some versions print one answer on each line, others print all of them as an array.
    let lists = answers.into_iter().map(|answer| match answer {
        Value::Array(answers) => answers,
        answer => vec![answer],
    });
    for answer in lists.flatten() {
        let frames = answer["Symbol"].as_array().cloned().unwrap_or_default();
        names.extend(frames.iter().filter_map(|frame| frame["FunctionName"].as_str()).map(demangled));
    }
    // Stubs that call virtual functions have no standard name. llvm uses a form of its own.
    names.retain(|name| !name.is_empty() && !name.starts_with("[thunk]"));
    Ok(names)
}

/// llvm-symbolizer demangles to whole declarations. The name is the word before the arguments.
fn demangled(name: &str) -> String {
    let name = plain(name);
    let args = name.rsplit_once("__cdecl ").map_or(name.as_str(), |(_, name)| name);
    args.to_owned()
}

fn expect_same_names(found: &BTreeSet<String>, expected: &BTreeSet<String>) -> Verdict {
    expect(expected.len() > 10, format_args!("llvm-symbolizer has only {expected:?}"))?;
    let missing: Vec<_> = expected.difference(found).collect();
    expect(missing.is_empty(), format_args!("{missing:?} are not among {found:?}"))
}

fn names_from_pdb(test: &Context<'_>) -> Verdict {
    for level in ["-O0", "-O2"] {
        let program = build(test, &format!("pdb{level}"), level)?;
        let addresses = code_addresses(&program.image)?;
        let ids = ids(test, &program.image)?;
        let found = reported(test, &profile(&addresses, &ids), &program.folder)?;
        expect_same_names(&found, &oracle(&program.image, &addresses)?)?;
        // The same names come from a symbol store without the image.
        let store = test.path(&format!("store{level}"));
        let stored = store.join("program.pdb").join(ids.1.to_uppercase());
        fs::create_dir_all(&stored).context("no folder")?;
        fs::copy(&program.pdb, stored.join("program.pdb")).context("no PDB")?;
        let from_store = reported(test, &profile(&addresses, &ids), &store)?;
        let missing: Vec<_> = found.difference(&from_store).filter(|name| !name.contains('`')).collect();
        expect(missing.len() <= 1, format_args!("{missing:?} are lost without the image"))?;
    }
    Ok(())
}

fn other_pdb(test: &Context<'_>) -> Verdict {
    let (program, other) = (build(test, "this", "-O2")?, build(test, "that", "-O1")?);
    let addresses = code_addresses(&program.image)?;
    let ids = ids(test, &program.image)?;
    let found = reported(test, &profile(&addresses, &ids), &other.folder)?;
    expect(
        !found.contains("shapes::Polygon::area"),
        format_args!("the other build's names are used: {found:?}"),
    )
}

const BREAKPAD_ID: &str = "6C974EBE5232EE469D6B7847A670B2A91";
const BREAKPAD_FILE: &str = "MODULE windows x86_64 6C974EBE5232EE469D6B7847A670B2A91 program.pdb\nFILE 0 C:\\src\\a.cc\n\
    INLINE_ORIGIN 0 ns::inlined(int)\nFUNC 1000 40 0 ns::outer(char)\nINLINE 0 7 0 0 1010 8\n1000 40 9 0\n\
    PUBLIC 1080 0 last\n";

/// A profile with addresses in each function of the Breakpad file, and the names of these functions.
fn of_breakpad_file() -> (Value, BTreeSet<String>) {
    let ids = ("5CA12C433000".to_owned(), BREAKPAD_ID.to_owned());
    let names = ["last", "ns::inlined", "ns::outer"].map(str::to_owned);
    (profile(&[0x1000, 0x1010, 0x1090], &ids), names.into_iter().collect())
}

fn names_from_breakpad(test: &Context<'_>) -> Verdict {
    let folder = test.path(&format!("symbols/program.pdb/{BREAKPAD_ID}"));
    fs::create_dir_all(&folder).context("no folder")?;
    fs::write(folder.join("program.sym"), BREAKPAD_FILE).context("no file")?;
    let (profile, names) = of_breakpad_file();
    expect_eq("the names", reported(test, &profile, &test.path("symbols"))?, names)
}

fn names_from_servers(test: &Context<'_>) -> Verdict {
    let path = format!("/program.pdb/{BREAKPAD_ID}/program.sym");
    let server = FileServer::of(HashMap::from([(path.clone(), BREAKPAD_FILE.into())]))?;
    let (of_breakpad, names) = of_breakpad_file();
    // If no server is named, no server is queried.
    let without = reported_with(test, &of_breakpad, &[])?;
    expect(without.is_disjoint(&names), format_args!("names without a server: {without:?}"))?;
    let options = ["--breakpad-symbol-server", &server.url];
    expect_eq("the names by Breakpad's server", reported_with(test, &of_breakpad, &options)?, names.clone())?;
    expect(server.requests().contains(&path), format_args!("requested: {:?}", server.requests()))?;
    // Downloaded files are kept.
    let before = server.requests().len();
    expect_eq("the names once more", reported_with(test, &of_breakpad, &options)?, names)?;
    expect_eq("requests for them", server.requests().len(), before)?;

    let program = build(test, "served", "-O2")?;
    let addresses = code_addresses(&program.image)?;
    let ids = ids(test, &program.image)?;
    let pdb = fs::read(&program.pdb).context("no PDB")?;
    let path = format!("/program.pdb/{}/program.pdb", ids.1.to_uppercase());
    let server = FileServer::of(HashMap::from([(path, pdb)]))?;
    let options = ["--windows-symbol-server", &server.url];
    let found = reported_with(test, &profile(&addresses, &ids), &options)?;
    for name in ["shapes::Polygon::area", "mainCRTStartup"] {
        let from = server.requests();
        expect(found.contains(name), format_args!("{name} is not among {found:?}; requested: {from:?}"))?;
    }
    Ok(())
}

fn mingw(test: &Context<'_>) -> Verdict {
    let folder = test.path("mingw");
    fs::create_dir_all(&folder).context("no folder")?;
    let source = folder.join("program.c");
    fs::write(
        &source,
        "static inline __attribute__((always_inline)) int inner(volatile int *p) { return *p * 3; }\n\
        __attribute__((noinline)) int outer(volatile int *p) { *p = 2; return inner(p) + 1; }\n\
        int main(void) { volatile int n = 4; return outer(&n); }\n",
    )
    .context("no source")?;
    let compile = ["-O2", "-g", "-o", "program.exe"];
    tool(Command::new("x86_64-w64-mingw32-gcc").args(compile).arg(&source).current_dir(&folder))?;
    let image = folder.join("program.exe");
    let output = test.nyquist(&["doctor"]).path(&image).run()?.succeeded()?.stdout_text();
    expect_contains("messages", &output, "names, lines and inlined calls from its debug info (DWARF)")?;
    let addresses = code_addresses(&image)?;
    let found = reported(test, &profile(&addresses, &ids(test, &image)?), &folder)?;
    for name in ["inner", "outer", "main"] {
        expect(found.contains(name), format_args!("{name} is not among {found:?}"))?;
    }
    Ok(())
}

fn doctor(test: &Context<'_>) -> Verdict {
    let program = build(test, "doctor", "-O2")?;
    let describe = |path: &Path| -> Result<String> {
        Ok(test.nyquist(&["doctor", "-v"]).path(path).run()?.succeeded()?.stdout_text())
    };
    let output = describe(&program.image)?;
    for part in ["program.pdb (PDB)", "table of functions (.pdata, ", "code id ", "debug id "] {
        expect_contains("of the image", &output, part)?;
    }
    let (_, debug_id) = ids(test, &program.image)?;
    expect_contains("of the PDB", &describe(&program.pdb)?, &format!("a PDB: debug id {debug_id}"))?;
    let summary = tool(Command::new("llvm-pdbutil").args(["dump", "--summary"]).arg(&program.pdb))?;
    let guid = summary.split_once("GUID: {").and_then(|(_, rest)| rest.split('}').next());
    let guid = guid.context("no GUID")?.replace('-', "").to_uppercase();
    expect_contains("the id", &debug_id, &guid)?;
    fs::remove_file(&program.pdb).context("no PDB")?;
    let output = describe(&program.image)?;
    expect_contains("without the PDB", &output, "only 1 exported functions")?;
    expect_contains("without the PDB", &output, "folder of program.pdb with --symbol-dir")?;
    expect_contains("without the PDB", &output, "program.pdb: no such file")
}
