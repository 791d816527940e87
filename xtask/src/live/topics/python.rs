//! Python's functions without names: what the summary advises gives them names, for each version of Python.

use std::fs;
use std::path::PathBuf;

use super::by::By;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, skip};
use super::profile::Profile;
use super::pypi::{self, Package};
use super::running_targets::{end, record_running};
use super::test::Test;
use super::tool_chain::with_tool_chain;

pub(super) const TESTS: &[Test] = &[
    Test::new("advised_options_name_pythons_functions", options),
    Test::new("advised_variables_name_pythons_functions", variables),
    Test::new("a_running_python_names_functions_when_told", running),
    Test::new("an_old_pythons_functions_are_named_by_py_spy", by_py_spy),
];

/// The profiler that is advised for versions without names for profilers.
const PY_SPY: Package = Package { name: "py-spy", version: "0.4.3" };

/// Computes for half a second. With a path, it is asked for names first, computes until it is ended, and makes the file
/// there.
const PROGRAM: &str = "#!/usr/bin/env python3
import sys, time
def spin(until):
    while not until():
        sum(range(1000))
def run(until):
    spin(until)
if len(sys.argv) > 1:
    sys.activate_stack_trampoline('perf')
    open(sys.argv[1], 'w').close()
    run(lambda: False)
end = time.process_time() + 0.5
run(lambda: time.process_time() > end)
";

/// The folder of Python 3.12 where pyenv has installed it, which needs its user's home to choose a version.
pub(super) fn managed_python() -> PathBuf {
    let versions = PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".pyenv/versions");
    let entries = fs::read_dir(&versions).into_iter().flatten().flatten();
    let version = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("3.12.")));
    version.unwrap_or(versions).join("bin")
}

/// A shell's command in the folder of the test, with Python 3.12 in front of others. Returns all that it prints.
fn shell(test: &Context<'_>, command: &str) -> Result<String, Stop> {
    let python = managed_python();
    let is_new = "python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))'";
    let path = format!("PATH={}:$PATH", python.display());
    if !test.program("sh").args(&["-ec", &format!("{path}\n{is_new}")]).run()?.status.success() {
        return skip("Python 3.12 is not installed");
    }
    let line = format!("{path}; cd '{}' && {{ {command}\n}} 2>&1", test.path("").display());
    let call = with_tool_chain(test, test.program("sh").args(&["-ec", &line]));
    Ok(call.run()?.succeeded()?.stdout_text())
}

/// Writes the program into the folder of the test.
fn program(test: &Context<'_>) -> Result<PathBuf, Stop> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = test.path("app.py");
    fs::write(&path, PROGRAM)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// The command that a summary shows for names.
fn advised(printed: &str) -> Result<&str, Stop> {
    let line = printed.lines().find(|line| line.contains("is in Python functions")).unwrap_or_default();
    let command = line.split('`').nth(1).filter(|command| command.starts_with("nyquist record "));
    command.ok_or_else(|| Stop::Failed(format!("no command in {line:?} of {printed}")))
}

/// Checks that the functions have names.
fn expect_named(profile: &Profile) -> Verdict {
    for function in ["spin", "run"] {
        let share = profile.total_share(function);
        expect_measured(share > 0.5, format_args!("{function} has {share:.3}: {:?}", profile.functions()))?;
    }
    Ok(())
}

/// Records without names, and then by the command that the summary shows.
fn follow(test: &Context<'_>, command: &str, expected: &str) -> Verdict {
    program(test)?;
    let printed = shell(test, &format!("nyquist record -so it.json.gz {command}"))?;
    let before = Profile::read(&test.path("it.json.gz"))?;
    expect(!before.functions().contains_key("spin"), "the function has a name already")?;
    let advised = advised(&printed)?;
    expect_contains("what is advised", advised, expected)?;
    let printed = shell(test, advised)?;
    expect(!printed.contains("is in Python functions"), &printed)?;
    expect_named(&Profile::read(&test.path("it.json.gz"))?)
}

fn options(test: &Context<'_>) -> Verdict {
    follow(test, "python3 app.py", "-so it.json.gz python3 -X perf app.py")
}

fn variables(test: &Context<'_>) -> Verdict {
    follow(test, "-- A=1 ./app.py", "-so it.json.gz -- PYTHONPERFSUPPORT=1 A=1 ./app.py")
}

/// A running program is told from within, which the summary advises.
fn running(test: &Context<'_>) -> Verdict {
    shell(test, "true")?;
    let (program, ready) = (program(test)?, test.fresh("ready"));
    let python = managed_python().join("python3");
    let target = test.program(&python).path(&program).path(&ready).start()?;
    target.wait_for_file(&ready)?;
    let profile = record_running(By::Best, test, &["-d", "0.5", "-p", &target.pid().to_string()])?;
    end(target)?;
    expect_named(&profile)
}

/// Versions before 3.12 accept the option and ignore it. The summary does not advise it, and what it advises is read.
fn by_py_spy(test: &Context<'_>) -> Verdict {
    let version = "import sys; print(sys.executable, sys.version_info < (3, 12))";
    let Ok(printed) = test.program("python3").args(&["-c", version]).run() else {
        return skip("python3 is not installed");
    };
    let printed = printed.succeeded()?.stdout_text();
    let Some(python) = printed.trim().strip_suffix(" True") else {
        return skip("python3 is not older than 3.12");
    };
    let app = program(test)?.display().to_string();
    let recorded = test.record_command(&[python, "-X", "perf", &app]).run_well()?;
    let hints = &recorded.finished.stderr;
    expect_contains(
        "what is advised",
        hints,
        "py-spy record -f speedscope -o py.speedscope.json -- COMMAND",
    )?;
    expect(!hints.contains("-X perf"), hints)?;
    let (py_spy, file) = (pypi::folder_of(PY_SPY)?.join("bin/py-spy"), test.path("py.speedscope.json"));
    let call = test.program(&py_spy).args(&["record", "-f", "speedscope", "-o"]).path(&file);
    call.args(&["--", python, &app]).run()?.succeeded()?;
    let report = test.nyquist(&["report", "--json"]).path(&file).run()?.succeeded()?.stdout_text();
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let rows = report["functions"].as_array().into_iter().flatten();
    let share = rows
        .filter(|row| row["function"] == "spin")
        .filter_map(|row| row["total_share"].as_f64())
        .sum::<f64>();
    expect_measured(share > 0.5, format_args!("spin has {share:.3} of py-spy's samples"))
}
