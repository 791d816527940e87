//! What helps to judge a recording, and to go on from it: few samples, a program that waits, a program without
//! lines, the next commands.

use crate::number::{counted, percent};
use crate::scale::Scale;
use crate::shell::quoted;
use crate::unnamed::is_binary;
use nyquist_analysis::{Function, is_only_address};
use nyquist_profile::{Lib, LibId, Profile};
use std::collections::BTreeMap;
use std::path::Path;

/// From so many samples on, shares are as sure as a reader expects.
const ENOUGH_SAMPLES: u64 = 100;

/// A line about shares that few samples make unsure. Two standard errors of a share of one half are 1 / √n.
pub(super) fn few_samples(samples: u64) -> Option<String> {
    (1..ENOUGH_SAMPLES).contains(&samples).then(|| {
        let points = 100.0 / (samples as f64).sqrt();
        format!(
            "With only {} a share may be wrong by {points:.0} points: a longer recording, or a higher rate (-r), says more",
            counted(samples, "sample")
        )
    })
}

/// A line about a program that used a CPU for less than a tenth of the time.
pub(super) fn mostly_waits(duration_ns: u64, cpu_time_ns: u64) -> Option<String> {
    /// A shorter recording is over before a program could have waited much.
    const MIN_DURATION_NS: u64 = 500_000_000;
    let waits = duration_ns >= MIN_DURATION_NS && cpu_time_ns < duration_ns / 10;
    waits.then(|| {
        let used = percent(cpu_time_ns as f64 / duration_ns as f64);
        format!("A CPU was used for {used} of the time: --off-cpu shows where its threads wait, and what for")
    })
}

/// A line about the program with most of the time, if it has the names of functions, but no lines.
pub(super) fn without_lines(profile: &Profile, functions: &[Function<'_>], scale: Scale) -> Option<String> {
    const WORTH_A_LINE: f64 = 0.1;
    let mut of_libs = BTreeMap::<LibId, (u64, bool)>::new();
    for function in functions.iter().filter(|function| !is_only_address(function.name)) {
        if let Some(lib) = profile.funcs().get(function.func.index()).and_then(|func| func.lib) {
            let (weight, has_lines) = of_libs.entry(lib).or_default();
            *weight += function.self_amount.weight;
            *has_lines |= function.file.is_some();
        }
    }
    let programs = of_libs.into_iter().filter(|(lib, _)| is_program(profile.lib(*lib)));
    let (lib, (weight, has_lines)) = programs.max_by_key(|(_, (weight, _))| *weight)?;
    let (lib, is_worth_it) = (profile.lib(lib), scale.share(weight) >= WORTH_A_LINE);
    (is_worth_it && !has_lines && is_binary(Path::new(&lib.path))).then(|| {
        format!(
            "{} has no debug info, so its lines and inlined functions are missing: `nyquist doctor {}` says what gives them",
            lib.name,
            quoted(lib.path.as_ref())
        )
    })
}

/// Whether a lib is not one of the system's, whose lines are seldom requested.
fn is_program(lib: &Lib) -> bool {
    const SYSTEM: [&str; 4] = ["/usr/lib", "/lib", "/usr/libexec/", "["];
    !SYSTEM.iter().any(|start| lib.path.starts_with(start)) && !lib.name.contains(".so")
}

/// The line about the saved profile. `is_shown` is whether it is shown in the browser now.
pub(super) fn saved(path: &Path, is_shown: bool) -> String {
    let saved = format!("Saved {}", path.display());
    if is_shown {
        return saved;
    }
    let file = match path.to_str() {
        Some("profile.json.gz") => String::new(),
        _ => format!(" {}", quoted(path.as_os_str())),
    };
    format!("{saved}: `nyquist report{file}` shows it here, `nyquist load{file}` in the browser")
}

/// The line about markers that the program has set.
pub(super) fn markers(markers: u64, saved: Option<&Path>) -> Option<String> {
    let file = saved.map_or(String::new(), |path| format!(" {}", quoted(path.as_os_str())));
    (markers > 0).then(|| {
        format!("It set {}: `nyquist report{file} --markers` lists their kinds", counted(markers, "marker"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection, View};
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Source, Thread};

    #[test]
    fn few_samples_are_called_so() {
        let line = few_samples(25).unwrap();
        assert!(line.starts_with("With only 25 samples a share may be wrong by 20 points:"), "{line}");
        assert_eq!((few_samples(0), few_samples(100)), (None, None));
    }

    #[test]
    fn a_program_that_waits_is_told_how_to_see_it() {
        let line = mostly_waits(2_000_000_000, 60_000_000).unwrap();
        assert!(line.starts_with("A CPU was used for 3.0% of the time: --off-cpu"), "{line}");
        assert_eq!(mostly_waits(2_000_000_000, 200_000_000), None);
        assert_eq!(mostly_waits(100_000_000, 0), None);
    }

    #[test]
    fn the_next_commands_have_the_profiles_name() {
        let line = |path: &str, is_shown| saved(Path::new(path), is_shown);
        assert_eq!(
            line("profile.json.gz", false),
            "Saved profile.json.gz: `nyquist report` shows it here, `nyquist load` in the browser"
        );
        assert_eq!(
            line("a b.json.gz", false),
            "Saved a b.json.gz: `nyquist report 'a b.json.gz'` shows it here, `nyquist load 'a b.json.gz'` in the browser"
        );
        assert_eq!(line("x.json.gz", true), "Saved x.json.gz");
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program's path is one of Linux")]
    #[test]
    fn a_program_with_names_alone_lacks_lines() {
        let path = std::env::current_exe().unwrap().display().to_string();
        let line = |file: &str, function: &str, lib: &str| {
            let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
            let process = builder.add_process(Process::default());
            let thread = builder.add_thread(Thread::new(process, "1", "main"));
            let lib = builder.add_lib(Lib { name: "app".into(), path: lib.into(), ..Lib::default() });
            let filename = builder.intern_string(file);
            let source = (!file.is_empty()).then(|| builder.intern_source(Source { filename }));
            let name = builder.intern_string(function);
            let func = builder.intern_func(Func { source, ..Func::new(name, Some(lib)) });
            let frame = builder.intern_frame(Frame::label(func));
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight: 5, ..Sample::new(0, Some(stack), 0) });
            let profile = builder.finish();
            let index = Index::new(&profile);
            let view = View::new(&index, &Selection::default());
            without_lines(&profile, &view.functions().functions, Scale::of(&view))
        };
        let found = line("", "work", &path).unwrap();
        assert!(found.starts_with("app has no debug info, so its lines"), "{found}");
        assert_eq!(line("/src/a.c", "work", &path), None);
        assert_eq!(line("", "0x1234", &path), None, "names come first");
        assert_eq!(line("", "work", "/usr/lib/libx"), None);
        assert_eq!(line("", "work", "/no/such/file"), None);
    }
}
