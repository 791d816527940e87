//! The command under Wine: it records a program of Windows, and what it says of profiles is what it says on Linux.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::wine::succeed;
use crate::builds;

/// A variable of the environment.
type Variable = (&'static str, PathBuf);

/// A test that gives the reason of its failure.
type Test = fn(&Wine<'_>) -> Result<()>;

/// How far a share may be from the program's, because the recording has some hundred samples.
const TOLERANCE: f64 = 0.10;

/// A measured share that is out of bounds. It is measured a second time, because a busy machine leaves few samples.
#[derive(Debug)]
struct Measured(String);

impl std::fmt::Display for Measured {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Measured {}

/// Runs the tests. A failure is printed.
pub(super) fn works(program: &Path, folder: &Path, environment: &[Variable]) -> Result<bool> {
    let own = folder.join("command");
    let _ = fs::remove_dir_all(&own);
    fs::create_dir_all(&own)?;
    let wine = Wine { program, environment, folder: &own };
    let tests: [(&str, Test); 8] = [
        ("a program is recorded", records),
        ("two libraries in turn at one address have their own names", records_plug_ins),
        ("the exit code of a command is passed on whole", passes_exit_codes_on),
        ("running processes are recorded", attaches),
        ("Ctrl-C on the console ends a recording, which is saved", is_interrupted),
        ("the kernel's events are not there, and what is there instead", has_no_events),
        ("profiles are read as on Linux", reads),
        ("the viewer is served", serves),
    ];
    let mut all = true;
    for (name, test) in tests {
        let mut result = test(&wine);
        if let Err(error) = &result
            && error.is::<Measured>()
        {
            println!("again   under Wine: {name}: {error}");
            result = test(&wine);
        }
        match &result {
            Ok(()) => println!("ok      under Wine: {name}"),
            Err(error) => println!("FAILED  under Wine: {name}: {error:#}"),
        }
        all &= result.is_ok();
    }
    Ok(all)
}

/// The command, and where it runs.
struct Wine<'a> {
    program: &'a Path,
    environment: &'a [Variable],
    folder: &'a Path,
}

impl Wine<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("wine");
        command.arg(self.program).args(args).current_dir(self.folder).envs(self.environment.iter().cloned());
        command
    }

    fn run(&self, args: &[&str]) -> Result<Output> {
        self.command(args).output().with_context(|| format!("cannot start wine for {args:?}"))
    }

    /// What the command prints, if it succeeds.
    fn text(&self, args: &[&str]) -> Result<String> {
        let output = self.run(args)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{args:?}: {}: {errors}", output.status);
        Ok(text)
    }

    /// The program with known shares.
    fn shares(&self) -> Result<PathBuf> {
        self.compiled("shares")
    }

    /// A program of `workloads/windows`.
    fn compiled(&self, name: &str) -> Result<PathBuf> {
        let program = self.folder.join(format!("{name}.exe"));
        if !program.exists() {
            let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
            let source = crate::paths::root().join(format!("workloads/windows/{name}.c"));
            succeed(compiler.args(["-g", "-O1", "-o"]).arg(&program).arg(source))?;
        }
        Ok(program)
    }
}

/// The total share of a function in a report as JSON.
fn share(report: &Value, function: &str) -> f64 {
    let functions = report["functions"].as_array().into_iter().flatten();
    let mut found = functions.filter(|it| it["function"] == function);
    found.next().and_then(|it| it["total_share"].as_f64()).unwrap_or_default()
}

/// The hot functions have their shares, their stacks reach the roots of both threads, and the exit status is the
/// program's.
fn records(wine: &Wine<'_>) -> Result<()> {
    wine.shares()?;
    let output = wine.run(&["record", "-s", "-o", "recorded.json.gz", "--", "./shares.exe", "60"])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(3), "the status is {}: {errors}", output.status);
    ensure!(output.stdout.starts_with(b"worked"), "the program's output is {:?}", output.stdout);
    let report: Value =
        serde_json::from_str(&wine.text(&["report", "--json", "--limit", "0", "recorded.json.gz"])?)?;
    let share = |function: &str| share(&report, function);
    let (alpha, beta, middle) = (share("alpha"), share("beta"), share("middle"));
    ensure!((alpha / middle - 0.7).abs() < TOLERANCE, Measured(format!("alpha has {alpha} of {middle}")));
    ensure!((beta / middle - 0.3).abs() < TOLERANCE, Measured(format!("beta has {beta} of {middle}")));
    for (caller, function) in [("main", "middle"), ("worker", "gamma_"), ("RtlUserThreadStart", "main")] {
        let (of_caller, of_function) = (share(caller), share(function));
        ensure!(
            of_function > 0.0 && of_caller >= of_function * 0.95,
            "{caller} {of_caller}, {function} {of_function}"
        );
    }
    let slept = share("NtDelayExecution");
    ensure!(slept < 0.1, "a sleeping thread has {slept} of the CPU time");
    Ok(())
}

/// A library that is loaded at the address of one that was unloaded has its own name and its own time.
fn records_plug_ins(wine: &Wine<'_>) -> Result<()> {
    wine.compiled("plug_ins")?;
    let source = crate::paths::root().join("workloads/windows/plug_in.c");
    for name in ["first", "second"] {
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        compiler.args(["-g", "-O1", "-shared", "-Wl,--image-base,0x6a000000,--disable-dynamicbase"]);
        compiler.arg(format!("-DWORK={name}_work")).arg(&source).arg("-o");
        succeed(compiler.arg(wine.folder.join(format!("{name}.dll"))))?;
    }
    // The program fails if the libraries have different addresses.
    wine.text(&["record", "-s", "-o", "plug_ins.json.gz", "--", "./plug_ins.exe", "4000"])?;
    let report: Value =
        serde_json::from_str(&wine.text(&["report", "--json", "--limit", "0", "plug_ins.json.gz"])?)?;
    let (first, second) = (share(&report, "first_work"), share(&report, "second_work"));
    let of_first = first / (first + second);
    ensure!((of_first - 1.0 / 3.0).abs() < TOLERANCE, Measured(format!("the first has {of_first} of both")));
    ensure!(first + second > 0.8, "both have {first} and {second}");
    Ok(())
}

/// Codes above 255 are the recorder's, too.
fn passes_exit_codes_on(wine: &Wine<'_>) -> Result<()> {
    let program = wine.compiled("exit_code")?;
    for code in ["300", "3221225477", "7"] {
        let mut command = Command::new("wine");
        command.arg(&program).args(["run".as_ref(), wine.program.as_os_str()]);
        command.args(["record", "-q", "-s", "-o", "code.json.gz", "--", "./exit_code.exe", code]);
        let output = command.current_dir(wine.folder).envs(wine.environment.iter().cloned()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(text.contains(&format!("exit code {code}\r\n")), "after {code}: {text:?}");
    }
    Ok(())
}

/// A running process is found by its name, and has its function.
fn attaches(wine: &Wine<'_>) -> Result<()> {
    let shares = wine.shares()?;
    let mut target = Command::new("wine");
    target.arg(shares).arg("40").current_dir(wine.folder).envs(wine.environment.iter().cloned());
    let mut target = target.stdout(Stdio::null()).spawn()?;
    // The process is there some time after Wine has started.
    let recorded = (0..50).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let args = ["record", "-s", "-d", "1", "-o", "attached.json.gz", "--name", "shares"];
        wine.run(&args).ok().filter(|output| output.status.success())
    });
    target.kill()?;
    target.wait()?;
    ensure!(recorded.is_some(), "the process is not recorded");
    let report: Value = serde_json::from_str(&wine.text(&["report", "--json", "attached.json.gz"])?)?;
    let (middle, gamma) = (share(&report, "middle"), share(&report, "gamma_"));
    ensure!(middle + gamma > 0.8, "middle has {middle}, gamma_ {gamma}");
    Ok(())
}

/// Ctrl-C reaches the program and the recorder, as on a console of Windows. Wine has a console only on a terminal,
/// which `script` makes. It ends the program with 0, and not with the code of Windows for that (`0xC000013A`).
fn is_interrupted(wine: &Wine<'_>) -> Result<()> {
    wine.compiled("ctrl_c")?;
    fs::copy(wine.program, wine.folder.join("nyquist.exe"))?;
    let record = "nyquist.exe record -s -o interrupted.json.gz -- ./ctrl_c.exe work began";
    let line = format!("wine ctrl_c.exe send began '{record}' > interrupted.txt 2>&1");
    let mut typed = Command::new("script");
    typed.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
    typed.current_dir(wine.folder).envs(wine.environment.iter().cloned());
    let output = typed.output().context("cannot start script")?;
    let printed = fs::read_to_string(wine.folder.join("interrupted.txt")).unwrap_or_default();
    ensure!(output.status.success(), "the status is {}: {printed}", output.status);
    ensure!(printed.contains("Saved interrupted.json.gz"), "it says {printed}");
    let report: Value = serde_json::from_str(&wine.text(&["report", "--json", "interrupted.json.gz"])?)?;
    ensure!(share(&report, "worked") > 0.5, "the program's function has {}", share(&report, "worked"));
    Ok(())
}

/// Wine has the functions of event traces, and no events. A recording that needs them says so.
fn has_no_events(wine: &Wine<'_>) -> Result<()> {
    wine.shares()?;
    let all = ["record", "-s", "-a", "-d", "1", "-o", "events.json.gz"];
    let command = ["record", "-s", "--backend", "etw", "-o", "events.json.gz", "--", "./shares.exe", "1"];
    for (args, hint) in [(&all[..], "-p"), (&command[..], "--backend suspend")] {
        let output = wine.run(args)?;
        let printed = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1), "{args:?}: {}: {printed}", output.status);
        ensure!(
            printed.contains("Wine") && printed.contains("hint:") && printed.contains(hint),
            "{args:?}: {printed}"
        );
        ensure!(output.stdout.is_empty(), "the program has run: {args:?}");
        ensure!(!wine.folder.join("events.json.gz").exists(), "a profile is left: {args:?}");
    }
    let waits = wine.run(&["record", "-s", "--off-cpu", "--", "./shares.exe", "1"])?;
    let printed = String::from_utf8_lossy(&waits.stderr);
    ensure!(printed.contains("--backend etw"), "--off-cpu: {printed}");
    Ok(())
}

/// The commands print the same of a profile as on Linux.
fn reads(wine: &Wine<'_>) -> Result<()> {
    let here = builds::development()?;
    let profile = "recorded.json.gz";
    for args in [
        &["report", profile][..],
        &["report", "--tree", profile],
        &["report", "--json", profile],
        &["query", profile],
        &["diff", profile, profile],
        &["script", profile],
        &["export", "-f", "folded", "-o", "-", profile],
        &["export", "-f", "speedscope", "-o", "-", profile],
    ] {
        let there = wine.text(args)?;
        let output = Command::new(&here).args(args).current_dir(wine.folder).output()?;
        let same = String::from_utf8_lossy(&output.stdout) == there && !there.is_empty();
        ensure!(same, "{args:?} prints something else than on Linux:\n{there}");
    }
    wine.text(&["flamegraph", "-o", "picture.svg", profile])?;
    ensure!(
        fs::read_to_string(wine.folder.join("picture.svg"))?.contains("</svg>"),
        "the picture is not an SVG file"
    );
    let missing = wine.run(&["report", "none.json.gz"])?;
    let errors = String::from_utf8_lossy(&missing.stderr);
    ensure!(missing.status.code() == Some(1) && errors.contains("none.json.gz"), "a missing file: {errors}");
    Ok(())
}

/// The page of the viewer is served.
fn serves(wine: &Wine<'_>) -> Result<()> {
    let mut command = wine.command(&["load", "--no-open", "recorded.json.gz"]);
    let mut server = command.stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(server.stderr.take().context("no standard error")?).lines();
    let link = lines.map_while(Result::ok).find_map(|line| {
        let at = line.find("http://127.0.0.1:").filter(|_| line.contains("Built-in viewer"))?;
        Some(line[at + "http://".len()..].trim().to_owned())
    });
    let page = link.as_deref().context("no link is printed").and_then(get);
    server.kill()?;
    server.wait()?;
    ensure!(page?.starts_with("HTTP/1.1 200"), "{link:?} is not served");
    Ok(())
}

/// The answer to a request for an address with a path.
fn get(link: &str) -> Result<String> {
    let (address, path) = link.split_once('/').context("the link has no path")?;
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
