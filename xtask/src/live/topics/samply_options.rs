//! samply's options: their visible effects with samply itself and with nyquist in its place, and the intended
//! differences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, skip};
use super::permissions::at_paranoid;
use super::profile::Profile;
use super::samply::link;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[Test::new("options_do_as_samplys_with_known_differences", compared)
    .exclusive("sets kernel.perf_event_paranoid to 1")];

/// A program that both recorders record with the same options.
struct Case {
    options: &'static [&'static str],
    command: &'static [&'static str],
    /// The effects that only samply has, and those that only nyquist has.
    alone: [&'static [&'static str]; 2],
    /// The reason for the difference.
    because: &'static str,
}

const fn same(options: &'static [&'static str], command: &'static [&'static str]) -> Case {
    Case { options, command, alone: [&[], &[]], because: "" }
}

const THREADS: &[&str] = &["threads", "100"];

const CASES: &[Case] = &[
    same(&[], THREADS),
    same(&["--iteration-count", "2"], THREADS),
    same(&[], &["ending", "50", "exit", "0"]),
    same(&["--include-args"], &["ending", "50", "exit", "0"]),
    same(&["--include-args=2"], &["ending", "50", "exit", "0"]),
    same(&[], &["fork_tree", "200"]),
    Case {
        options: &["--include-args"],
        command: &["fork_tree", "200"],
        alone: [
            &[
                "1 x child-30 / child-30",
                "1 x child-40 / child-40",
                "1 x grandchild-10 / grandchild-10",
                "1 x parent-20 / parent-20",
            ],
            &[
                "1 x child-30 200 / child-30 200",
                "1 x child-40 200 / child-40 200",
                "1 x grandchild-10 200 / grandchild-10 200",
                "1 x parent-20 200 / parent-20 200",
            ],
        ],
        because: "a process that gives itself another name has the arguments that it was started with all the same",
    },
    Case {
        options: &["--per-cpu-threads"],
        command: THREADS,
        alone: [&["CPU / CPU"], &["CPU / All CPUs"]],
        because: "the row of all CPUs together says that it is",
    },
    Case {
        options: &["--cswitch-markers"],
        command: THREADS,
        alone: [
            &[],
            &[
                "marker Running on CPU on threads / threads",
                "marker Running on CPU on threads / worker-half",
                "marker Running on CPU on threads / worker-third",
            ],
        ],
        because: "samply writes the markers only where CPUs have rows",
    },
    Case {
        options: &["--cswitch-markers", "--per-cpu-threads"],
        command: THREADS,
        alone: [
            &["CPU / CPU", "marker CPU N on CPU / CPU"],
            &["CPU / All CPUs", "marker CPU N on CPU / All CPUs"],
        ],
        because: "the row of all CPUs together says that it is",
    },
    Case {
        options: &["--main-thread-only"],
        command: THREADS,
        alone: [&["1 x threads / worker-half", "1 x threads / worker-third"], &[]],
        because: "samply heeds it only on Windows and macOS",
    },
    Case {
        options: &["--reuse-threads", "--iteration-count", "2"],
        command: THREADS,
        alone: [
            &["3 x threads / threads"],
            &["1 x threads / threads", "1 x threads / worker-half", "1 x threads / worker-third"],
        ],
        because: "threads are merged by the names that they have, not by those that they were born with",
    },
    Case {
        options: &["--iteration-count", "2"],
        command: &["ending", "50", "exit", "7"],
        alone: [&["status 0"], &["status 7"]],
        because: "the status is the command's",
    },
    Case {
        options: &["--iteration-count", "2", "--ignore-exit-code"],
        command: &["ending", "50", "exit", "7"],
        alone: [&["status 1"], &["2 x ending / ending", "status 7"]],
        because: "samply 0.13.1 has this option on other systems alone",
    },
    Case {
        options: &["--fold-recursive-prefix"],
        command: &["recursion", "200", "4000"],
        alone: [&["a stack of more than 100 frames"], &[]],
        because: "samply ends such stacks at 128 frames and then finds no base to fold",
    },
    same(&[], &["recursion", "200", "4000"]),
];

/// The path of samply in `PEERS_DIR`.
fn samply() -> Result<PathBuf, Stop> {
    let folder = std::env::var_os("PEERS_DIR");
    let program = folder.map(|folder| Path::new(&folder).join("bin/samply")).filter(|path| path.is_file());
    program.ok_or_else(|| Stop::Skipped("there is no samply in PEERS_DIR".to_owned()))
}

fn compared(test: &Context<'_>) -> Verdict {
    let programs = [samply()?, link(test)?];
    let _held = at_paranoid(1)?;
    for case in CASES {
        let [samplys, ours] = [seen(test, &programs[0], case)?, seen(test, &programs[1], case)?];
        if !samplys.contains("status 1") && !samplys.iter().any(|line| line.contains(" / ")) {
            return skip(format_args!("samply records nothing here: {samplys:?}"));
        }
        let alone = [samplys.difference(&ours), ours.difference(&samplys)].map(Iterator::collect::<Vec<_>>);
        let expected = case.alone.map(|lines| lines.iter().collect::<Vec<_>>());
        let is_known = alone.iter().zip(&expected).all(|(alone, expected)| alone.iter().eq(expected.iter()));
        let Case { options, command, because, .. } = case;
        expect(
            is_known,
            format_args!(
                "{command:?} with {options:?}: samply alone gives {:?}, nyquist alone {:?}; known is {expected:?}: {because}",
                alone[0], alone[1]
            ),
        )?;
    }
    Ok(())
}

/// The visible parts of a recording, as lines: the status, the rows with the number of rows of the same name,
/// and the kinds of markers.
fn seen(test: &Context<'_>, program: &Path, case: &Case) -> Result<BTreeSet<String>, Stop> {
    let output = test.fresh("profile.json.gz");
    let command = test.workload(case.command[0]).display().to_string();
    let call = test.program(program).args(&["record", "--save-only", "-o"]).path(&output).args(case.options);
    let finished = call.args(&["--", &command]).args(&case.command[1..]).run()?;
    let mut lines = BTreeSet::from([format!("status {}", finished.code())]);
    if output.exists() {
        lines.extend(rows(&Profile::read(&output)?));
    }
    Ok(lines)
}

fn rows(profile: &Profile) -> BTreeSet<String> {
    let (mut counts, mut lines) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for (thread, json) in profile.threads.iter().zip(profile.json["threads"].as_array().into_iter().flatten())
    {
        // samply has markers of mappings, whose occurrence is random.
        let markers: Vec<String> = marker_names(profile, json).filter(|name| name != "mmap").collect();
        // samply samples its own process before the command begins, and nyquist leaves out empty rows.
        if thread.process.starts_with("samply") || thread.samples.is_empty() && markers.is_empty() {
            continue;
        }
        let row = format!("{} / {}", thread.process, without_number(&thread.name));
        lines.extend(markers.iter().map(|name| format!("marker {} on {row}", without_number(name))));
        if thread.process == "CPU" {
            lines.insert(row);
        } else {
            *counts.entry(row).or_default() += 1;
        }
    }
    if profile.stacks().any(|(stack, _)| stack.len() > 100) {
        lines.insert("a stack of more than 100 frames".to_owned());
    }
    lines.extend(counts.iter().map(|(row, count)| format!("{count} x {row}")));
    lines
}

/// A name without the number of a CPU, because a program may run on any CPU.
fn without_number(name: &str) -> String {
    let is_cpu = name.strip_prefix("CPU ").is_some_and(|number| number.parse::<u32>().is_ok());
    if is_cpu { "CPU N".to_owned() } else { name.to_owned() }
}

fn marker_names<'a>(profile: &'a Profile, thread: &'a Value) -> impl Iterator<Item = String> + 'a {
    let own = &thread["stringArray"];
    let strings = if own.is_array() { own } else { &profile.json["shared"]["stringArray"] };
    let names = thread["markers"]["name"].as_array().into_iter().flatten();
    names.filter_map(|name| Some(strings[name.as_u64()? as usize].as_str()?.to_owned()))
}
