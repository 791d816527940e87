//! Go programs without debug info and symbol table. Names, lines and inlined calls come from Go's own tables,
//! and are compared with Go's own tools.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, skip};
use super::http::Client;
use super::profile::Frame;
use super::server::{link_of, urls_of};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("stripped_programs_have_names_and_inlines", |test| names(test, Build::Plain))
        .quick()
        .in_pairs(SHARES),
    Test::new("stripped_pie_programs_have_names", |test| names(test, Build::Pie)).in_pairs(SHARES),
    Test::new("programs_without_section_headers_have_names", |test| names(test, Build::NoSections))
        .in_pairs(SHARES),
    Test::new("every_function_is_what_go_says_it_is", every_function),
    Test::new("doctor_says_that_names_come_from_gos_tables", doctor),
];

const SOURCE: &str = "\
package main

import (
	\"fmt\"
	\"os\"
	\"strconv\"
	\"time\"
)

type box struct{ turns uint64 }

// Most instructions of the loop are here. Several are slow, and a CPU is interrupted after those.
func mix(value, turn uint64) uint64 {
	return (value ^ turn) * (value>>29 + turn) * (value>>17 ^ turn) * (value>>7 | 1) // mix
}

//go:noinline
func (b *box) turn(count int) {
	for i := 0; i < count; i++ {
		b.turns = mix(b.turns, uint64(i)) // call
	}
}

//go:noinline
func largest[T int | uint64](values []T) T {
	most := values[0]
	for _, value := range values {
		if value > most {
			most = value
		}
	}
	return most
}

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	b := &box{}
	for time.Now().Before(end) {
		b.turn(1000000)
	}
	fmt.Println(largest([]uint64{b.turns, 7}))
}
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// The linker has stripped symbols and debug info.
    Plain,
    /// The same, and position-independent.
    Pie,
    /// As `Plain`, without section headers.
    NoSections,
    /// With symbols and debug info.
    Whole,
}

/// Builds the program.
fn build(test: &Context<'_>, build: Build) -> Result<PathBuf, Stop> {
    if Command::new("go").arg("version").output().is_err() {
        return skip("go is not installed");
    }
    let folder = test.path("go");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("main.go"), SOURCE)?;
    let program = folder.join(format!("{build:?}"));
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program);
    if build != Build::Whole {
        command.arg("-ldflags=-s -w");
    }
    if build == Build::Pie {
        command.arg("-buildmode=pie");
    }
    let built = command.arg("main.go").current_dir(&folder).env("GO111MODULE", "off").output()?;
    ensure_success(&built)?;
    if build == Build::NoSections {
        let mut bytes = fs::read(&program)?;
        // `e_shoff`, then `e_shnum` and `e_shstrndx`.
        bytes.get_mut(40..48).context("a short header")?.fill(0);
        bytes.get_mut(60..64).context("a short header")?.fill(0);
        fs::write(&program, bytes)?;
    }
    Ok(program)
}

fn ensure_success(output: &std::process::Output) -> Result<()> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The number of the source line with a mark.
fn marked(mark: &str) -> Option<u64> {
    let line = SOURCE.lines().position(|line| line.ends_with(&format!("// {mark}")));
    line.map(|index| index as u64 + 1)
}

fn names(test: &Context<'_>, kind: Build) -> Verdict {
    let program = build(test, kind)?;
    let recorded = test.record_command(&[&program.display().to_string(), "600"]).run_well()?;
    let profile = &recorded.profile;
    let lib = format!("{kind:?}");
    let own = |frame: &Frame| frame.lib.as_deref() == Some(lib.as_str());
    let named = |stack: &[&Frame], name: &str, depth: u64, line: Option<u64>| {
        stack.iter().any(|frame| {
            let in_file = frame.file.as_deref().is_some_and(|file| file.ends_with("/go/main.go"));
            frame.function == name
                && frame.inline_depth == depth
                && in_file
                && (line.is_none() || frame.line == line)
        })
    };
    let functions = profile.functions();
    let share = profile.share_of_stacks(|stack| {
        named(stack, "main.(*box).turn", 0, None) && named(stack, "main.main", 0, None)
    });
    expect_measured(
        share > 0.7,
        format_args!("{share:.3} of the samples are in turn, called by main: {:?}", functions.keys()),
    )?;
    let inlined = profile.share_of_stacks(|stack| {
        named(stack, "main.mix", 1, marked("mix")) && named(stack, "main.(*box).turn", 0, marked("call"))
    });
    expect_measured(inlined > 0.05, format_args!("{inlined:.3} of the samples are in what was inlined"))?;
    let is_number = |frame: &Frame| frame.function.starts_with("0x") || frame.function.starts_with("fun_");
    let nameless = profile.frame_of(|frame| own(frame) && is_number(frame));
    expect(nameless.is_none(), format_args!("a frame of the program without a name: {nameless:?}"))
}

/// A function: its name, its address and its size.
type Function = (String, u64, u64);

/// The functions of a program, as `go tool nm` prints them.
fn functions(program: &Path) -> Result<Vec<Function>> {
    let output =
        Command::new("go").args(["tool", "nm", "-size", "-sort", "address"]).arg(program).output()?;
    ensure_success(&output)?;
    let text = String::from_utf8(output.stdout)?;
    let read = |line: &str| {
        let mut args = line.split_whitespace();
        let (address, size, kind) = (args.next()?, args.next()?, args.next()?);
        let name = args.collect::<Vec<_>>().join(" ");
        let address = u64::from_str_radix(address, 16).ok()?;
        let size = size.parse().ok().filter(|&size| size > 0)?;
        // `runtime.text` and `runtime.etext` are the linker's marks for the start and the end of the code.
        let is_function = kind.eq_ignore_ascii_case("t") && name != "runtime.etext" && name != "runtime.text";
        is_function.then_some((name, address, size))
    };
    Ok(text.lines().filter_map(read).collect())
}

/// The answers of `go tool addr2line` for addresses: the function, and the file with the line.
fn addr2line(program: &Path, addresses: &[u64]) -> Result<Vec<(String, String)>> {
    let mut child = Command::new("go")
        .args(["tool", "addr2line"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("no input")?;
    let addresses: Vec<String> = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(addresses.concat().as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    ensure_success(&output)?;
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines.chunks_exact(2).map(|two| (two[0].to_owned(), two[1].to_owned())).collect())
}

/// A name without its generic arguments, which Go's tables leave out.
fn without_arguments(name: &str) -> String {
    match (name.find('['), name.rfind(']')) {
        (Some(start), Some(end)) if start < end => format!("{}[...]{}", &name[..start], &name[end + 1..]),
        _ => name.to_owned(),
    }
}

/// The called function and the innermost place, as `file:line`, in the answer for one address.
fn answered(frame: &Value) -> (String, String) {
    let innermost = frame["inlines"].as_array().and_then(|inlines| inlines.first()).unwrap_or(frame);
    let file = innermost["file"].as_str().unwrap_or("?");
    let place = format!("{file}:{}", innermost["line"].as_u64().unwrap_or(0));
    (frame["function"].as_str().unwrap_or("?").to_owned(), place)
}

fn every_function(test: &Context<'_>) -> Verdict {
    let (whole, stripped) = (build(test, Build::Whole)?, build(test, Build::Plain)?);
    let functions = functions(&whole)?;
    expect(functions.len() > 1000, format_args!("only {} functions", functions.len()))?;
    let within = |(_, start, size): &Function| [*start, start + size / 3, start + size / 2, start + size - 1];
    let addresses: Vec<u64> = functions.iter().flat_map(within).collect();
    let expected = addr2line(&whole, &addresses)?;
    expect(expected.len() == addresses.len(), "go tool addr2line did not answer each")?;
    let found = ask(test, &stripped, &addresses)?;
    expect(found.len() == addresses.len(), "not every address was answered")?;
    let mut differences = BTreeMap::new();
    for ((address, found), (name, place)) in addresses.iter().zip(found).zip(expected) {
        let expected = (without_arguments(&name), place);
        if found != expected {
            differences.insert(*address, (found, expected));
        }
    }
    let first: Vec<_> = differences.iter().take(5).collect();
    let count = addresses.len();
    expect(
        differences.is_empty(),
        format_args!("{} of {count} addresses differ: {first:#x?}", differences.len()),
    )
}

/// The answers of the symbol server for addresses of a program. The server has loaded a short recording of
/// that program.
fn ask(test: &Context<'_>, program: &Path, addresses: &[u64]) -> Result<Vec<(String, String)>, Stop> {
    const BASE: u64 = 0x40_0000;
    let recorded = test.record_command(&[&program.display().to_string(), "50"]).run_well()?;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lib = recorded.profile.lib(&name)?;
    let running = test.nyquist(&["load", "--no-open"]).path(&recorded.path).start()?;
    let (_, server) = urls_of(&link_of(&running)?)?;
    let (authority, path) =
        server.strip_prefix("http://").and_then(|url| url.split_once('/')).context("no URL")?;
    let port = authority.rsplit(':').next().context("no port")?.parse()?;
    let path = format!("/{}/symbolicate/v5", path.trim_end_matches('/'));
    let mut answers = Vec::new();
    for some in addresses.chunks(2000) {
        let frames: Vec<_> = some.iter().map(|address| json!([0, address - BASE])).collect();
        let job = json!({"memoryMap": [[lib["debugName"], lib["breakpadId"]]], "stacks": [frames]});
        let answer = Client::new(port).post(&path, &json!({"jobs": [job]}).to_string())?.json()?;
        let frames = answer["results"][0]["stacks"][0].as_array().context("no answer")?;
        answers.extend(frames.iter().map(answered));
    }
    running.signal(libc::SIGINT)?;
    running.wait()?.succeeded()?;
    Ok(answers)
}

fn doctor(test: &Context<'_>) -> Verdict {
    let program = build(test, Build::Plain)?;
    let output = test.nyquist(&["doctor"]).path(&program).run()?.succeeded()?.stdout_text();
    expect_contains("messages", &output, "names, lines and inlined calls from Go's own tables (.gopclntab)")
}
