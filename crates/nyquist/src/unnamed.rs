//! Code of a recording that has no names, and what would give it some.

use crate::scale::Scale;
use nyquist_analysis::{Function, is_only_address};
use nyquist_profile::{Lib, LibId, Profile};
use std::collections::BTreeMap;
use std::path::Path;

/// From this share of the CPU time on, code without names is worth a line.
const WORTH_A_LINE: f64 = 0.1;

/// A runtime that makes code while a program runs, known by the file that it is in, and how it is made to name that code.
const RUNTIMES: [(&str, &str); 5] = [
    ("node", "node --perf-basic-prof names it"),
    ("chromium", "chromium --no-sandbox --js-flags=--perf-basic-prof names it"),
    ("chrome", "chrome --no-sandbox --js-flags=--perf-basic-prof names it"),
    (
        "libjvm.so",
        "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer names it",
    ),
    ("libcoreclr.so", "DOTNET_PerfMapEnabled=1 names it"),
];

/// The function in which Python runs a program's code, and the category of functions that Python has named.
const PYTHON: (&str, &str) = ("_PyEval_EvalFrameDefault", "Python");

/// A line for the file with the most time in functions without names, one for code that was made while the program ran, and
/// one for a program that an interpreter has run, where each is worth it.
pub(crate) fn hints(profile: &Profile, functions: &[Function<'_>], scale: Scale) -> Vec<String> {
    let mut of_libs = BTreeMap::<LibId, u64>::new();
    let mut of_made_code = 0;
    for function in functions.iter().filter(|function| is_only_address(function.name)) {
        let weight = function.self_amount.weight;
        match profile.funcs().get(function.func.index()).and_then(|func| func.lib) {
            Some(lib) if !is_perf_map(profile.lib(lib)) => *of_libs.entry(lib).or_default() += weight,
            Some(_) | None => of_made_code += weight,
        }
    }
    let is_worth_it = |weight: u64| scale.share(weight) >= WORTH_A_LINE;
    let in_files = of_libs.into_iter().max_by_key(|(_, weight)| *weight).filter(|it| is_worth_it(it.1));
    let in_files = in_files.map(|(lib, weight)| of_file(profile.lib(lib), &scale.percent(weight)));
    let made = is_worth_it(of_made_code).then(|| runtime(profile)).flatten();
    let made = made.map(|advice| {
        format!("{} is in code that was made while the program ran: {advice}", scale.percent(of_made_code))
    });
    let interpreted = interpreted(profile, functions).filter(|weight| is_worth_it(*weight));
    let interpreted = interpreted.map(|weight| {
        let share = scale.percent(weight);
        format!("{share} is in functions of Python, shown as its interpreter's: python3 -X perf (3.12 and later) names them")
    });
    in_files.into_iter().chain(made).chain(interpreted).collect()
}

/// What the functions of a program in Python take, where Python was not asked to name them.
fn interpreted(profile: &Profile, functions: &[Function<'_>]) -> Option<u64> {
    let (interpreter, category) = PYTHON;
    if profile.categories().iter().any(|known| known.name == category) {
        return None;
    }
    functions.iter().find(|function| function.name == interpreter).map(|function| function.total.weight)
}

fn of_file(lib: &Lib, share: &str) -> String {
    let what = format!("{share} is in functions of {} whose names are not known", lib.name);
    if Path::new(&lib.path).is_absolute() {
        format!("{what}: `nyquist doctor {}` says what gives them", lib.path)
    } else {
        format!("{what}: `nyquist doctor` says what gives them")
    }
}

/// How the runtime that is in the profile is made to name its code.
fn runtime(profile: &Profile) -> Option<&'static str> {
    let is_there = |name: &str| profile.libs().iter().any(|lib| lib.name == name);
    RUNTIMES.iter().find(|(name, _)| is_there(name)).map(|(_, advice)| *advice)
}

/// Whether a lib stands for what a process's perf map names, or would name.
fn is_perf_map(lib: &Lib) -> bool {
    lib.name.strip_prefix("perf-").is_some_and(|rest| rest.strip_suffix(".map").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection, View};
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Thread};

    /// The hints on a profile of these functions: the path of their file, if any, their name and weight.
    fn hints_of(functions: &[(&str, &str, u32)]) -> Vec<String> {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for &(path, name, weight) in functions {
            let lib = (!path.is_empty()).then(|| {
                let name = path.rsplit('/').next().unwrap_or_default();
                builder.add_lib(Lib { name: name.into(), path: path.into(), ..Lib::default() })
            });
            let name = builder.intern_string(name);
            let func = builder.intern_func(Func { name, lib, source: None, line: None, column: None });
            let frame = builder.intern_frame(Frame::label(func));
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight, ..Sample::new(0, Some(stack), 0) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        hints(&profile, &view.functions().functions, Scale::of(&view))
    }

    #[test]
    fn the_file_with_the_most_time_without_names_is_told() {
        let told = hints_of(&[
            ("/usr/bin/sort", "fun_c230", 30),
            ("/usr/bin/sort", "fun_c990", 20),
            ("/usr/lib/libz.so", "fun_12", 15),
            ("/usr/bin/sort", "main", 35),
        ]);
        let expected = "50.0% is in functions of sort whose names are not known: `nyquist doctor /usr/bin/sort` says what gives them";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn a_runtime_is_told_how_to_name_what_it_makes() {
        let told = hints_of(&[
            ("/usr/bin/node", "Builtins_MergeAt", 60),
            ("", "0x7f5a0800727d", 10),
            ("", "0x7f5a08007281", 30),
        ]);
        let expected =
            "40.0% is in code that was made while the program ran: node --perf-basic-prof names it";
        assert_eq!(told, [expected]);
        let told =
            hints_of(&[("/usr/lib/jvm/libjvm.so", "JavaMain", 1), ("/tmp/perf-17.map", "0x20f337d8", 1)]);
        assert!(matches!(told.as_slice(), [told] if told.contains("DumpPerfMapAtExit")), "{told:?}");
    }

    #[test]
    fn python_is_told_to_name_its_functions() {
        let told = hints_of(&[
            ("/usr/lib/libpython3.12.so", "_PyEval_EvalFrameDefault", 60),
            ("/usr/lib/libc.so.6", "memcpy", 40),
        ]);
        assert!(
            matches!(told.as_slice(), [told] if told.starts_with("60.0% is in functions of Python")),
            "{told:?}"
        );
    }

    #[test]
    fn little_time_without_names_is_no_line() {
        assert!(hints_of(&[("/usr/bin/sort", "fun_c230", 9), ("/usr/bin/sort", "main", 91)]).is_empty());
        // Whose code that is, and whether it could have names, is not known.
        assert!(hints_of(&[("", "0x7f5a0800727d", 9)]).is_empty());
        assert!(hints_of(&[]).is_empty());
    }
}
