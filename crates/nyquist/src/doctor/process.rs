//! Findings about a running process for recording it.

use super::finding::{Finding, Section};
use super::module::{Module, unreadable};
use crate::number::counted;
use nyquist_record::linux::machine::AccessDenied;
use nyquist_record::linux::process::{MappedCodeFile, ProcessFacts};
use nyquist_symbols::Finder;
use std::path::Path;

/// The findings about the process itself: a pure function of the facts.
pub(crate) fn section(process: &ProcessFacts) -> Section {
    let findings = [
        Some(attaching(process)),
        process.tracer.map(|tracer| {
            Finding::better("tracer", format!("it is traced by process {tracer}: ptrace cannot record it"))
                .hint(format!("detach the debugger, or end it: kill {tracer}"))
        }),
        process.has_own_root.then(|| {
            Finding::ok(
                "namespace",
                "it has its own root folder: its files are opened through /proc/PID/root",
            )
        }),
        process
            .inner_pid
            .map(|inner| Finding::ok("namespace", format!("in its own pid namespace it is process {inner}"))),
        process.modules.is_none().then(|| {
            Finding::problem(
                "modules",
                "its mappings may not be seen: it is another user's, or has more privileges",
            )
            .hint("run as root")
        }),
    ];
    let threads = counted(process.threads as u64, "thread");
    let name = format!("Process {} ({}, {threads})", process.pid.0, process.name);
    Section { kind: "process", name, findings: findings.into_iter().flatten().collect() }
}

/// Whether it can be recorded by either backend.
pub(crate) fn can_record(process: &ProcessFacts) -> bool {
    process.perf.is_ok() || process.ptrace.is_ok()
}

fn attaching(process: &ProcessFacts) -> Finding {
    const TOPIC: &str = "attaching";
    match (&process.perf, &process.ptrace) {
        (Ok(()), _) => Finding::ok(TOPIC, "it can be attached to by perf_event_open"),
        (Err(perf), Ok(())) => {
            Finding::better(TOPIC, format!("it can be attached to by ptrace, not by perf: {}", perf.reason))
                .hints(perf.advice.iter().cloned())
        }
        (Err(perf), Err(ptrace)) => {
            Finding::problem(TOPIC, format!("it cannot be recorded: {}", reasons(perf, ptrace)))
                .hints(perf.advice_with(ptrace))
        }
    }
}

fn reasons(perf: &AccessDenied, ptrace: &AccessDenied) -> String {
    if perf.reason == ptrace.reason {
        perf.reason.clone()
    } else {
        format!("{}, and {}", perf.reason, ptrace.reason)
    }
}

/// The detailed findings about a process's program, and one line for each library.
pub(crate) fn modules(process: &ProcessFacts, finder: &Finder) -> Vec<Section> {
    let is_program = |module: &&MappedCodeFile| Some(&module.path) == process.program.as_ref();
    let modules = process.modules.iter().flatten();
    let program = modules.clone().find(is_program).map(|module| inspect(module, process, finder));
    let mut sections: Vec<Section> = program
        .map(|looked| match looked {
            Ok(module) => module.section("program"),
            Err(finding) => Section { kind: "program", name: "Program".to_owned(), findings: vec![finding] },
        })
        .into_iter()
        .collect();
    let libraries = modules.filter(|module| !is_program(module));
    let findings: Vec<_> = libraries
        .map(|module| {
            inspect(module, process, finder).map_or_else(|finding| finding, |module| module.summary())
        })
        .collect();
    if !findings.is_empty() {
        sections.push(Section { kind: "libraries", name: "Its libraries".to_owned(), findings });
    }
    sections
}

/// The findings about processes that gave no answer, from a sentence of each.
pub(crate) fn silence(sentences: Vec<String>) -> Option<Section> {
    let finding = |sentence| {
        Finding::problem("access", sentence).hint("end the program that serves its files, or wait for it")
    };
    let findings: Vec<_> = sentences.into_iter().map(finding).collect();
    let name = "Access to the process".to_owned();
    (!findings.is_empty()).then_some(Section { kind: "access", name, findings })
}

fn inspect(module: &MappedCodeFile, process: &ProcessFacts, finder: &Finder) -> Result<Module, Finding> {
    let file = module.file.clone().ok_or_else(|| gone(&module.path))?;
    Module::of_held(&module.path, file, process.root.clone(), finder)
        .map_err(|reason| unreadable(&module.path, &reason))
}

fn gone(path: &Path) -> Finding {
    let text = format!(
        "{}: deleted or replaced since it was mapped, or withheld: only what it exports has names",
        path.display()
    );
    Finding::better("library", text).hint("root can still open it; or start the process anew")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::finding::tests::assert_mendable;
    use super::*;
    use nyquist_convert::event::Pid;
    use nyquist_record::linux::machine::AccessDenied;

    fn process() -> ProcessFacts {
        ProcessFacts {
            pid: Pid(7),
            name: "app".to_owned(),
            threads: 3,
            tracer: None,
            inner_pid: None,
            program: None,
            has_own_root: false,
            root: None,
            modules: Some(Vec::new()),
            perf: Ok(()),
            ptrace: Ok(()),
        }
    }

    fn denied(reason: &str) -> AccessDenied {
        AccessDenied { reason: reason.to_owned(), advice: vec!["be root".to_owned()] }
    }

    fn check(process: &ProcessFacts, level: Level, expected: &str) {
        let section = section(process);
        assert_mendable(&section.findings);
        let message: Vec<_> =
            section.findings.iter().map(|it| format!("{} ({})", it.text, it.hints.join(", "))).collect();
        assert_eq!(
            section.findings.iter().map(|it| it.level).max_by_key(|it| *it as u8),
            Some(level),
            "{message:?}"
        );
        assert!(message.iter().any(|message| message.contains(expected)), "{expected} is not in {message:?}");
    }

    #[test]
    fn attaching_takes_one_backend() {
        check(&process(), Level::Ok, "can be attached to by perf_event_open ()");
        let by_ptrace = ProcessFacts { perf: Err(denied("a filter")), ..process() };
        check(&by_ptrace, Level::Better, "by ptrace, not by perf: a filter (be root)");
        assert!(can_record(&by_ptrace));
        let neither = ProcessFacts { ptrace: Err(denied("a filter")), ..by_ptrace };
        check(&neither, Level::Problem, "cannot be recorded: a filter (be root)");
        assert!(!can_record(&neither));
    }

    #[test]
    fn what_is_special_about_a_process_is_said() {
        check(&ProcessFacts { tracer: Some(4711), ..process() }, Level::Better, "traced by process 4711");
        check(&ProcessFacts { tracer: Some(4711), ..process() }, Level::Better, "(detach the debugger");
        check(&ProcessFacts { has_own_root: true, ..process() }, Level::Ok, "/proc/PID/root");
        check(&ProcessFacts { inner_pid: Some(1), ..process() }, Level::Ok, "it is process 1");
        check(&ProcessFacts { modules: None, ..process() }, Level::Problem, "(run as root)");
        assert_mendable(&[gone(Path::new("/bin/app"))]);
        assert!(silence(Vec::new()).is_none());
        assert_mendable(&silence(vec!["process 7 gives no access".to_owned()]).unwrap().findings);
    }
}
