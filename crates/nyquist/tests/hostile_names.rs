//! Text from outside never reaches a terminal raw. Every subcommand is run with a profile full of hostile
//! strings.

mod terminal;

use nyquist_formats::hidden::is_hidden;
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{
    CategoryColor, Frame, Func, Lib, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema,
    MarkerTiming, MarkerValue, Meta, Process, ProfileBuilder, Sample, Source, Thread, well_known,
};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Codes that set colours, set the terminal's title and move back; each kind of hidden character; and
/// characters that have a meaning in some format.
const HOSTILE: &str = "\u{1b}[31mX\u{1b}]0;t\u{7}\n\r\u{8}\t\u{7f}\u{85}\u{9b}2J\u{202e}\u{2066}\u{200b}\u{200f}\u{2028}\u{feff}\u{e0041}\u{ad};,\"<&>Y";

fn hostile(what: &str) -> String {
    format!("{what}{HOSTILE}{what}")
}

/// The input files.
struct Files {
    folder: PathBuf,
    /// A profile with names, one without, and folded stacks with an invalid line.
    profile: PathBuf,
    unnamed: PathBuf,
    folded: PathBuf,
    /// A program with a hostile name that needs a library with a hostile name.
    program: PathBuf,
}

impl Files {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nyquist-hostile-{test}-{}", std::process::id()));
        // A name cannot contain a slash; all other characters are possible.
        let folder = folder.join(hostile("folder"));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(hostile(name));
        let files = Self {
            profile: path("profile").with_extension("json"),
            unnamed: path("unnamed").with_extension("json"),
            folded: path("folded"),
            program: path("sleep"),
            folder,
        };
        write_profile(&files.profile, true);
        write_profile(&files.unnamed, false);
        fs::write(&files.folded, "a\u{1b}[31m;b\u{202e} 2\nno count\u{9b}\n").unwrap();
        let mut program = fs::read("/bin/sleep").unwrap();
        let needed = program.windows(9).position(|window| window == b"libc.so.6");
        if let Some(at) = needed {
            program[at..at + 9].copy_from_slice(b"l\x1b[2J\r\x9b\nx");
        }
        fs::write(&files.program, program).unwrap();
        files
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder.parent().unwrap());
    }
}

fn write_profile(path: &Path, is_symbolicated: bool) {
    let mut builder = ProfileBuilder::new(Meta {
        product: hostile("product"),
        interval: 1_000_000,
        symbolicated: is_symbolicated,
        arguments: Some(hostile("arguments")),
        ..Meta::default()
    });
    let lib = builder.add_lib(Lib {
        name: hostile("lib"),
        path: format!("/proc/nonexistent/{}", hostile("path")),
        debug_name: hostile("debug-name"),
        code_id: Some("00112233445566778899aabbccddeeff00112233".into()),
        ..Lib::default()
    });
    let category = builder.add_category(&hostile("category"), CategoryColor::Blue);
    let filename = builder.intern_string(&format!("/proc/nonexistent/{}.rs", hostile("file")));
    let source = builder.intern_source(Source { filename });
    let process =
        builder.add_process(Process { pid: "7".into(), name: hostile("process"), ..Process::default() });
    for (tid, name) in [("7", "main"), ("8", "worker")] {
        let thread = builder.add_thread(Thread::new(process, tid, hostile(name)));
        let mut stack = None;
        for address in [0x1000, 0x2000, 0x3000_u32] {
            let name = if is_symbolicated {
                hostile(&format!("function{address}"))
            } else {
                format!("{address:#x}")
            };
            let name = builder.intern_string(&name);
            let source = is_symbolicated.then_some(source);
            let func = Func { source, line: Some(3), ..Func::new(name, Some(lib)) };
            let func = builder.intern_func(func);
            let frame = Frame {
                address: Some(address),
                line: Some(address),
                category: Some(category.into()),
                ..Frame::label(func)
            };
            let frame = builder.intern_frame(frame);
            stack = Some(builder.intern_stack(stack, frame));
            let sample = Sample::new(u64::from(address), stack, 40_000_000);
            builder.add_sample(thread, Sample { weight: 40, ..sample });
        }
        let schema = builder.add_marker_schema(MarkerSchema {
            name: hostile("schema"),
            display: vec![MarkerDisplay::Table],
            fields: vec![MarkerField {
                key: "key".into(),
                label: Some(hostile("label")),
                format: MarkerFormat::String,
            }],
            ..MarkerSchema::default()
        });
        let value = MarkerValue::String(builder.intern_string(&hostile("value")));
        let marker = Marker {
            name: builder.intern_string(&hostile("marker")),
            timing: MarkerTiming::Interval(0, 1_000_000),
            category,
            schema: Some(schema),
            values: vec![value],
            stack: None,
        };
        builder.add_marker(thread, marker);
        let event = builder.add_marker_schema(MarkerSchema {
            name: well_known::event_schema(&hostile("event")),
            fields: vec![MarkerField {
                key: well_known::EVENT_COUNT.into(),
                label: None,
                format: MarkerFormat::Integer,
            }],
            ..MarkerSchema::default()
        });
        let occurrence = Marker {
            name: builder.intern_string(&hostile("event")),
            timing: MarkerTiming::Instant(2_000_000),
            category,
            schema: Some(event),
            values: vec![MarkerValue::Integer(3)],
            stack,
        };
        builder.add_marker(thread, occurrence);
    }
    let mut bytes = Vec::new();
    let options = WriteOptions { version: FormatVersion::default(), gzip: false };
    firefox::write(&builder.finish(), options, &mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The subcommands that the command's help lists.
fn subcommands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_nyquist")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names = commands.lines().take_while(|line| !line.is_empty());
    // Continuation lines are indented further.
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// The arguments with which a subcommand prints names; words such as `FILE` stand for files. Empty for a
/// subcommand that this test does not know yet.
fn calls(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "record" => &["PROGRAM-MISSING", "-o MISSING/x -- true", "--thread HOSTILE true", "-p HOSTILE"],
        "load" => &["MISSING", "PROGRAM", "FILE --port HOSTILE"],
        "help" => &["HOSTILE", "record HOSTILE"],
        // No folder can be created below a file.
        "man" => &["PROGRAM/x"],
        "import" => &["FOLDED -o OUT --save-only", "FILE -o OUT --save-only", "MISSING"],
        "report" => &[
            "FILE",
            "FILE --json",
            "FILE --full-names",
            "FILE --tree",
            "FILE --inverted",
            "FILE --lines",
            "FILE --libs",
            "FILE --threads",
            "FILE --markers",
            "FILE --waits",
            "FILE --tree --json",
            "FILE --threads --json",
            "FILE --markers --json",
            "FILE --event EVENT",
            "FILE --event HOSTILE",
            "FILE --ratio EVENT/cpu-time",
            "FILE --ratio EVENT/cpu-time --json",
            "FILE --ratio HOSTILE",
            "FILE --ratio HOSTILE/cpu-time",
            "FILE --columns self,lib,file,handle,name",
            "UNNAMED",
            "UNNAMED -v",
            "FOLDED",
            "MISSING",
            "PROGRAM",
            "FILE --thread HOSTILE",
            "FILE --process none",
            "FILE --lib none",
            "FILE --category none",
            "FILE --focus HOSTILE",
            "FILE --HOSTILE",
            "FILE HOSTILE",
        ],
        "annotate" => &[
            "f-0 FILE",
            "f-1 FILE --asm",
            "f-0 FILE --json",
            "function FILE",
            "function FILE --hottest",
            "f-2 FILE -v",
            "f-2 FILE --ratio EVENT/cpu-time",
            "f-2 FILE --ratio EVENT/cpu-time --json",
            "HOSTILE FILE",
            "nothing FILE",
            "f-0 UNNAMED",
        ],
        "diff" => &[
            "FILE FILE --markdown --all",
            "FILE FILE --all",
            "FILE UNNAMED --all",
            "FILE UNNAMED --json",
            "UNNAMED FILE --fail-above 1",
            "FILE MISSING",
            "FILE FILE --thread HOSTILE",
        ],
        "script" => &["FILE", "FILE --json", "FILE --limit 2", "FILE --thread none"],
        "top" => &[
            "--batch -n 1 PROGRAM 0.1",
            "--off-cpu --batch -n 1 PROGRAM 0.1",
            "--batch -n 1 PROGRAM-MISSING",
            "--batch -p HOSTILE",
        ],
        "query" => &[
            "FILE summary",
            "FILE functions",
            "FILE function f-0",
            "FILE function function",
            "FILE tree",
            "FILE callers f-2",
            "FILE lines",
            "FILE source f-0",
            "FILE threads",
            "FILE libs",
            "FILE markers",
            "FILE timeline",
            "FILE functions --json",
            "FILE markers --json",
            "FILE function HOSTILE",
            "FILE HOSTILE",
            "FILE summary HOSTILE",
        ],
        // Not in the help: the command that `cargo nyquist` runs.
        "cargo" => &["run --HOSTILE", "HOSTILE"],
        _ => calls_that_write(subcommand),
    }
}

/// The same for subcommands that write a profile in another form.
fn calls_that_write(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "export" => &[
            "FILE -o - --format folded --with-threads --with-libs",
            "FILE -o - --format perf-script",
            "FILE -o - --format csv",
            "FILE -o - --format speedscope",
            "FILE -o - --format chrome",
            "FILE -o - --format html",
            "FILE -o OUT --format folded",
            "FILE -o MISSING/x --format csv",
            "FILE -o HOSTILE",
        ],
        "flamegraph" => &[
            "FILE -o -",
            "FILE -o OUT",
            "FILE --json",
            "FILE --chart -o -",
            "FILE --before UNNAMED -o -",
            "FILE --inverted -o -",
            "FILE -o MISSING/x",
        ],
        _ => calls_without_profile(subcommand),
    }
}

/// The same for subcommands that read no profile.
fn calls_without_profile(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "agent" => &[
            "--to OUT PROGRAM 0.1",
            "--to OUT PROGRAM-MISSING",
            "--push http://HOSTILE --check PROGRAM",
            "--push HOSTILE PROGRAM",
            "--to HOSTILE --label a=HOSTILE --check PROGRAM",
            "--to OUT --unit HOSTILE",
            "--config HOSTILE",
            "--config PROGRAM",
        ],
        "stat" => &[
            "PROGRAM 0.1",
            "--json PROGRAM 0.1",
            "--per-thread PROGRAM 0.1",
            "--per-thread --json PROGRAM 0.1",
            "PROGRAM 0.1 --vs PROGRAM 0.1",
            "PROGRAM-MISSING",
            "-e HOSTILE PROGRAM 0.1",
            "-e faults:HOSTILE PROGRAM 0.1",
            "-p HOSTILE",
        ],
        "list" => &["", "--json", "HOSTILE", "HOSTILE --json"],
        "ctl" => &["HOSTILE", "1 HOSTILE", "1 status", "1 save --json"],
        "doctor" => &["PROGRAM", "PROGRAM -v", "PROGRAM --json", "MISSING", "FILE"],
        "setup" => &["--dry-run", "--HOSTILE"],
        "recover" => &["", "--json", "HOSTILE", "HOSTILE --discard", "-o HOSTILE"],
        "cache" => &["", "--json", "clear", "HOSTILE"],
        "guide" => &[""],
        "completions" => &["bash", "HOSTILE"],
        _ => &[],
    }
}

fn argv(call: &str, files: &Files) -> Vec<OsString> {
    let word = |word: &str| -> OsString {
        let missing = files.folder.join(hostile("missing"));
        match word {
            "FILE" => files.profile.clone().into(),
            "UNNAMED" => files.unnamed.clone().into(),
            "FOLDED" => files.folded.clone().into(),
            "PROGRAM" => files.program.clone().into(),
            "PROGRAM-MISSING" | "MISSING" => missing.into(),
            "MISSING/x" => missing.join("x").into(),
            "PROGRAM/x" => files.program.join("x").into(),
            "EVENT" => hostile("event").into(),
            "EVENT/cpu-time" => format!("{}/cpu-time", hostile("event")).into(),
            "HOSTILE/cpu-time" => OsString::from_vec([HOSTILE.as_bytes(), b"\x9b/cpu-time"].concat()),
            "OUT" => files.folder.join(hostile("out")).into(),
            // Also bytes that are not UTF-8.
            "HOSTILE" => OsString::from_vec([HOSTILE.as_bytes(), b"\x9b\xff"].concat()),
            "--HOSTILE" => OsString::from_vec([b"--", HOSTILE.as_bytes()].concat()),
            word => word.into(),
        }
    };
    call.split_whitespace().map(word).collect()
}

fn command(files: &Files, argv: &[OsString]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nyquist"));
    command.args(argv).current_dir(&files.folder).stdin(Stdio::null());
    command.env("HOME", &files.folder).env("XDG_CACHE_HOME", files.folder.join("cache"));
    command
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .env_remove("DEBUGINFOD_URLS");
    command
}

/// Fails if a hidden character remains; newlines and tabs are layout.
fn assert_shown(what: &str, output: &[u8], is_ours: impl Fn(char) -> bool) {
    let text = std::str::from_utf8(output).unwrap_or_else(|error| {
        panic!(
            "{what}: bytes that are no text at {}: {:?}",
            error.valid_up_to(),
            String::from_utf8_lossy(output)
        )
    });
    let found = text.char_indices().find(|(_, char)| is_hidden(*char) && !is_ours(*char));
    if let Some((at, char)) = found {
        let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let line = text[from..].lines().next().unwrap_or_default();
        panic!("{what}: {char:?} in {line:?}");
    }
}

fn for_each_call(files: &Files, check: impl Fn(&str, Command)) {
    let subcommands = subcommands();
    assert!(subcommands.len() > 10, "{subcommands:?}");
    for subcommand in subcommands.iter().map(String::as_str).chain(["cargo"]) {
        assert!(!calls(subcommand).is_empty(), "how is `{subcommand}` made to print names?");
        for call in calls(subcommand) {
            let line = format!("{subcommand} {call}");
            check(&line, command(files, &argv(&line, files)));
        }
    }
    check("HOSTILE", command(files, &argv("HOSTILE", files)));
    check("--HOSTILE", command(files, &argv("--HOSTILE", files)));
}

/// Whether a command line writes a format to a pipe by the format's own rules.
fn is_raw(line: &str) -> bool {
    line.starts_with("export") && line.contains("-o -")
}

#[test]
fn nothing_hidden_reaches_a_pipe() {
    let files = Files::new("pipe");
    for_each_call(&files, |line, mut command| {
        let output = command.output().unwrap();
        assert!(output.status.code().is_none_or(|code| code != 101), "{line}: {:?}", output.status);
        let is_layout = |char| matches!(char, '\n' | '\t');
        if !is_raw(line) || !line.contains("speedscope") && !line.contains("chrome") {
            assert_shown(&format!("{line}: stdout"), &output.stdout, is_layout);
        }
        assert_shown(&format!("{line}: stderr"), &output.stderr, is_layout);
        if line.ends_with("--json") && output.status.success() {
            let json: Vec<serde_json::Value> = serde_json::Deserializer::from_slice(&output.stdout)
                .into_iter()
                .collect::<Result<_, _>>()
                .unwrap();
            assert!(!json.is_empty(), "{line}");
        }
    });
}

#[test]
fn names_in_json_are_the_same_names() {
    let files = Files::new("json");
    let output = command(&files, &argv("report FILE --json", &files)).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["profile"], hostile("product"));
    assert_eq!(json["functions"][0]["lib"], hostile("lib"));
}

#[test]
fn a_name_breaks_no_record() {
    let files = Files::new("records");
    let lines = |line: &str| {
        let output = command(&files, &argv(line, &files)).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // Three stacks of one process; three functions; a header, frames and an empty line for each of six
    // samples.
    let folded = lines("export FILE -o - --format folded");
    assert_eq!(folded.lines().count(), 3, "{folded}");
    assert!(folded.lines().all(|line| line.ends_with(" 80") && line.matches(';').count() <= 3), "{folded}");
    let csv = lines("export FILE -o - --format csv");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let script = lines("script FILE");
    assert_eq!(script.lines().count(), 2 * (3 * 2 + 1 + 2 + 3), "{script}");
    let report = lines("report FILE --libs");
    assert_eq!(report.lines().filter(|line| line.contains("lib\\x1b[31m")).count(), 1, "{report}");
}

#[test]
fn nothing_hidden_reaches_a_terminal() {
    let files = Files::new("terminal");
    for_each_call(&files, |line, mut command| {
        let shown = terminal::shown(&mut command, 80);
        // The terminal itself puts a carriage return before a newline. Help contains clap's own codes,
        // which are allowed.
        let ours = ["0", "1", "2", "4", "31", "32", "33", "22", "24"];
        let shown = ours.iter().fold(String::from_utf8_lossy(&shown).into_owned(), |shown, code| {
            shown.replace(&format!("\u{1b}[{code}m"), "")
        });
        assert_shown(line, shown.replace("\r\n", "\n").as_bytes(), |char| matches!(char, '\n' | '\t'));
    });
}
