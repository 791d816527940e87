//! Code of a recording without names, and how to get names.

mod python;

pub(crate) use python::TypedCommand;

use crate::scale::Scale;
use crate::shell;
use nyquist_analysis::{Function, is_only_address};
use nyquist_profile::{Lib, LibId, Profile};
use nyquist_system::open_regular;
use python::Interpreted;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// The least share of the CPU time at which code without names is reported.
const WORTH_A_LINE: f64 = 0.1;

/// A runtime that generates code at run time.
struct Runtime {
    /// Its file.
    lib: &'static str,
    /// How to make it write the names of that code.
    advice: &'static str,
    /// The word of a command line that does so already.
    word: &'static str,
    /// The fix for a runtime with that word that has written no names.
    instead: &'static str,
}

/// The note about runtimes that write a name when they generate a piece of code.
const NAMED_EARLY: &str = "it was asked for names but gave none for this code: code that it generates later, moves or discards may have no names";

const RUNTIMES: [Runtime; 6] = [
    Runtime {
        lib: "node",
        advice: "node --perf-basic-prof names it",
        word: "--perf-basic-prof",
        instead: NAMED_EARLY,
    },
    Runtime {
        lib: "chromium",
        advice: "chromium --no-sandbox --js-flags=--perf-basic-prof names it",
        word: "--perf-basic-prof",
        instead: NAMED_EARLY,
    },
    Runtime {
        lib: "chrome",
        advice: "chrome --no-sandbox --js-flags=--perf-basic-prof names it",
        word: "--perf-basic-prof",
        instead: NAMED_EARLY,
    },
    Runtime {
        lib: "libjvm.so",
        advice: "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit names it when the program ends, and `jcmd PID Compiler.perfmap` while it runs",
        word: "DumpPerfMapAtExit",
        instead: "it writes the names when it ends: `jcmd PID Compiler.perfmap` makes it write them while it runs",
    },
    Runtime {
        lib: "beam.smp",
        advice: "erl +JPperf true names it",
        word: "+JPperf true",
        instead: NAMED_EARLY,
    },
    Runtime {
        lib: "libcoreclr.so",
        advice: "DOTNET_PerfMapEnabled=1 names it",
        word: "DOTNET_PerfMapEnabled=1",
        instead: NAMED_EARLY,
    },
];

/// Lines about code without names: the file with the most time, code generated at run time, and
/// a program run by an interpreter. Each is included if its share is large enough. `command` was launched, and
/// `command_lines` are those of attached processes.
pub(crate) fn hints(
    profile: &Profile,
    (command, command_lines): (TypedCommand<'_>, &str),
    functions: &[Function<'_>],
    scale: Scale,
) -> Vec<String> {
    let mut of_libs = BTreeMap::<LibId, u64>::new();
    let mut of_made_code = 0;
    let add = |sum: &mut u64, weight| *sum = sum.saturating_add(weight);
    for function in functions.iter().filter(|function| is_only_address(function.name)) {
        let weight = function.self_amount.weight;
        match profile.funcs().get(function.func.index()).and_then(|func| func.lib) {
            Some(lib) if !is_perf_map(profile.lib(lib)) => add(of_libs.entry(lib).or_default(), weight),
            Some(_) | None => add(&mut of_made_code, weight),
        }
    }
    let is_worth_it = |weight: u64| scale.share(weight) >= WORTH_A_LINE;
    let in_files = of_libs.into_iter().max_by_key(|(_, weight)| *weight).filter(|it| is_worth_it(it.1));
    let in_files = in_files.map(|(lib, weight)| of_file(profile.lib(lib), &scale.percent(weight)));
    let made = is_worth_it(of_made_code).then(|| advice(profile, command_lines, functions)).flatten();
    let made = made.map(|advice| {
        format!("{} is in code that was made while the program ran: {advice}", scale.percent(of_made_code))
    });
    let interpreted = Interpreted::find(profile, functions).filter(|python| is_worth_it(python.weight));
    let interpreted = interpreted.map(|python| {
        let (share, advice) = (scale.percent(python.weight), python.advice(command, command_lines));
        format!("{share} is in Python functions, which appear as the interpreter: {advice}")
    });
    in_files.into_iter().chain(made).chain(interpreted).collect()
}

fn of_file(lib: &Lib, share: &str) -> String {
    let what = format!("{share} is in functions of {} whose names are not known", lib.name);
    if is_binary(Path::new(&lib.path)) {
        format!("{what}: `{}` says what gives them", shell::nyquist(["doctor", &lib.path]))
    } else {
        what
    }
}

/// Whether `nyquist doctor` supports the file: a binary of Linux, Windows or macOS.
pub(crate) fn is_binary(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_read =
        path.is_absolute() && open_regular(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
    let macho = [0xfeed_face_u32, 0xfeed_facf, 0xcafe_babe, 0xcafe_babf];
    let is_macho = || macho.iter().any(|known| [known.to_be_bytes(), known.to_le_bytes()].contains(&magic));
    is_read && (magic == *b"\x7fELF" || magic.starts_with(b"MZ") || is_macho())
}

/// How to make the profile's runtime name its code. A hint is left out if the recording shows
/// that it was followed already.
fn advice(profile: &Profile, command_lines: &str, functions: &[Function<'_>]) -> Option<&'static str> {
    let is_there = |runtime: &&Runtime| profile.libs().iter().any(|lib| lib.name == runtime.lib);
    let runtime = RUNTIMES.iter().find(is_there)?;
    let command = profile.meta().arguments.as_deref().unwrap_or_default();
    let has_named = || {
        let named = functions.iter().filter(|function| !is_only_address(function.name));
        let mut libs = named.filter_map(|function| profile.funcs().get(function.func.index())?.lib);
        libs.any(|lib| is_perf_map(profile.lib(lib)) || is_jitdump(profile.lib(lib)))
    };
    let was_requested = [command, command_lines].iter().any(|text| text.contains(runtime.word));
    Some(if was_requested || has_named() { runtime.instead } else { runtime.advice })
}

/// Whether a lib holds the code of a jitdump.
fn is_jitdump(lib: &Lib) -> bool {
    lib.name.strip_prefix("jit-").is_some_and(|rest| rest.strip_suffix(".dump").is_some())
}

/// Whether a lib holds code that a process's perf map names, or would name.
fn is_perf_map(lib: &Lib) -> bool {
    lib.name == "[JIT]"
        || lib.name.strip_prefix("perf-").is_some_and(|rest| rest.strip_suffix(".map").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection, View};
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Thread};

    /// The hints on a profile of these functions, each given by file (if any), name and weight.
    fn hints_of(functions: &[(&str, &str, u64)]) -> Vec<String> {
        hints_for(("", ""), functions)
    }

    /// The same, for a recording of a command, or of processes with these command lines.
    fn hints_for((command, attached): (&str, &str), functions: &[(&str, &str, u64)]) -> Vec<String> {
        let meta = Meta { interval: 1_000_000, arguments: Some(command.into()), ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for &(path, name, weight) in functions {
            let lib = (!path.is_empty()).then(|| {
                let name = path.rsplit('/').next().unwrap_or_default();
                builder.add_lib(Lib { name: name.into(), path: path.into(), ..Lib::default() })
            });
            let name = builder.intern_string(name);
            let func = builder.intern_func(Func::new(name, lib));
            let frame = builder.intern_frame(Frame::label(func));
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight, ..Sample::new(0, Some(stack), 0) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        hints(&profile, (TypedCommand::default(), attached), &view.functions().functions, Scale::of(&view))
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the paths are those of Linux")]
    fn the_file_with_most_nameless_time_is_reported() {
        let hints = hints_of(&[
            ("/proc/self/exe", "fun_c230", 30),
            ("/proc/self/exe", "fun_c990", 20),
            ("/usr/lib/libz.so", "fun_12", 15),
            ("/proc/self/exe", "main", 35),
        ]);
        let expected = "50.0% is in functions of exe whose names are not known: `nyquist doctor /proc/self/exe` says what gives them";
        assert_eq!(hints, [expected]);
    }

    #[test]
    fn doctor_is_advised_for_files_it_can_look_into() {
        for path in ["/etc/passwd", "/proc/nonexistent", "/dev/zero", "/etc", "[vdso]"] {
            let hints = hints_of(&[(path, "fun_c230", 30)]);
            assert!(matches!(&*hints, [hints] if !hints.contains("doctor")), "{hints:?}");
        }
    }

    #[test]
    fn what_is_done_already_is_not_advised() {
        let node = [("/usr/bin/node", "Builtins_MergeAt", 60), ("", "0x7f5a0800727d", 40)];
        let check = |hints: &[String], expected: &str, not: &str| {
            assert!(
                matches!(hints, [hints] if hints.contains(expected) && !hints.contains(not)),
                "{hints:?}"
            );
        };
        check(&hints_for(("node app.js", ""), &node), "node --perf-basic-prof", "requested");
        check(&hints_for(("node --perf-basic-prof app.js", ""), &node), "asked for names", "--perf");
        check(&hints_for(("", "node --perf-basic-prof app.js \n"), &node), "asked for names", "--perf");
        check(&hints_for(("", "node app.js \n"), &node), "node --perf-basic-prof", "requested");
        let named = [&node[..], &[("/tmp/perf-7.map", "LazyCompile:~run", 9)]].concat();
        check(&hints_of(&named), "asked for names", "--perf");
        let java = [("/usr/lib/jvm/libjvm.so", "JavaMain", 60), ("/tmp/perf-7.map", "0x7f5a0800727d", 40)];
        check(&hints_of(&java), "DumpPerfMapAtExit", "requested");
        check(
            &hints_for(("java -XX:+DumpPerfMapAtExit App", ""), &java),
            "jcmd PID Compiler.perfmap",
            "DumpPerf",
        );
    }

    #[test]
    fn a_runtime_gets_advice_for_generated_code() {
        let hints = hints_of(&[
            ("/usr/bin/node", "Builtins_MergeAt", 60),
            ("", "0x7f5a0800727d", 10),
            ("", "0x7f5a08007281", 30),
        ]);
        let expected =
            "40.0% is in code that was made while the program ran: node --perf-basic-prof names it";
        assert_eq!(hints, [expected]);
        let hints =
            hints_of(&[("/usr/lib/jvm/libjvm.so", "JavaMain", 1), ("/tmp/perf-17.map", "0x20f337d8", 1)]);
        assert!(matches!(hints.as_slice(), [hints] if hints.contains("DumpPerfMapAtExit")), "{hints:?}");
    }

    #[test]
    fn erlang_gets_advice_for_generated_code() {
        let erlang = [("/usr/lib/erlang/beam.smp", "process_main", 60), ("", "0x7f5a0800727d", 40)];
        let hints = hints_for(("erl -noshell", ""), &erlang);
        assert!(
            matches!(hints.as_slice(), [hints] if hints.ends_with("erl +JPperf true names it")),
            "{hints:?}"
        );
    }

    #[test]
    fn python_gets_advice_for_function_names() {
        let hints = hints_of(&[
            ("/usr/lib/libpython3.12.so", "_PyEval_EvalFrameDefault", 60),
            ("/usr/lib/libc.so.6", "memcpy", 40),
        ]);
        assert!(
            matches!(hints.as_slice(), [hints] if hints.starts_with("60.0% is in Python functions") ),
            "{hints:?}"
        );
    }

    #[test]
    fn little_time_without_names_is_no_line() {
        assert!(hints_of(&[("/usr/bin/sort", "fun_c230", 9), ("/usr/bin/sort", "main", 91)]).is_empty());
        // It is not known which runtime generated that code, and whether it could have names.
        assert!(hints_of(&[("", "0x7f5a0800727d", 9)]).is_empty());
        assert!(hints_of(&[]).is_empty());
    }
}
