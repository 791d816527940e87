//! `nyquist doctor`: what a machine, a program or a process needs for good profiles, and how to fix it.

mod finding;
mod machine;
mod macos;
mod module;
mod process;
mod sources;
mod windows;

use crate::args::DoctorArgs;
use crate::delegates;
use crate::failure::{FAILED, Failure, io_reason};
use crate::finder::finder;
use crate::identity::{self, Rights};
use crate::page;
use crate::printer::Printer;
use crate::text::Screen;
use crate::watch::Watch;
use finding::{Finding, Report, Section};
use module::{Module, unreadable};
use nyquist_convert::event::Pid;
use nyquist_object::{Elf, FileSource};
use nyquist_record::linux::machine::Machine;
use nyquist_record::linux::process::ProcessFacts;
use nyquist_symbols::{Finder, missing_loader_of, needed_libraries};
use nyquist_system::open_regular;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let machine = Machine::query();
    let mut report =
        Report { can_record: machine::can_record(&machine), sections: vec![machine::section(&machine)] };
    let looks_at_file = args.subject.as_ref().filter(|subject| subject.parse::<u32>().is_err());
    if let Some(subject) = looks_at_file
        && let Ok((_, Rights::Users)) = Rights::to_open(|| open_regular(&in_path(subject)))
    {
        // The checks of root's permissions are done, and reading the file needs no privileges.
        identity::give_up_privileges()?;
    }
    let finder = finder(&args.symbols, Watch::new(Printer::new(args.verbosity), None));
    match &args.subject {
        None => {}
        Some(subject) => match subject.parse() {
            Ok(pid) => inspect_process(Pid(pid), &finder, &mut report)?,
            Err(_) => report.sections.extend(inspect_file(subject, &finder)?),
        },
    }
    if args.subject.is_some() {
        // The caches belong to the user, and the findings are about the user's rights.
        report.sections.push(identity::as_invoking_user(|| sources::section(&args.symbols))?);
    }
    if args.json {
        page::print_json(&report.json())?;
    } else {
        page::print(report.text(Screen::of_stdout(), args.verbosity.verbose))?;
    }
    Ok(if report.can_record { 0 } else { FAILED })
}

fn inspect_process(pid: Pid, finder: &Finder, report: &mut Report) -> Result<(), Failure> {
    let process = ProcessFacts::read(pid).ok_or_else(|| {
        Failure::new(format!("there is no process {}", pid.0)).hint("`ps -e` lists the processes that run")
    })?;
    report.can_record = process::can_record(&process);
    report.sections.push(process::section(&process));
    report.sections.extend(process::modules(&process, finder));
    report.sections.extend(process::silence(delegates::sentences()));
    Ok(())
}

/// The program and, in a line each, its direct libraries.
fn inspect_file(subject: &str, finder: &Finder) -> Result<Vec<Section>, Failure> {
    let given = in_path(subject);
    let interpreter = interpreter(&given)?;
    let path = interpreter.clone().unwrap_or_else(|| given.clone());
    let cannot_read = |reason: String| Failure::new(format!("cannot inspect {}: {reason}", path.display()));
    if let Some(section) = windows::inspect(&path, finder).map_err(&cannot_read)? {
        return Ok(vec![section]);
    }
    if let Some(section) = macos::inspect(&path, finder).map_err(&cannot_read)? {
        return Ok(vec![section]);
    }
    let elf = open(&path).map_err(&cannot_read)?;
    let mut program = Module::read(&path, finder).map_err(&cannot_read)?.section("program");
    if interpreter.is_some() {
        let text = format!("{} is a script: this is the program that runs it", given.display());
        program.findings.insert(0, Finding::ok("script", text));
    }
    if let Some(loader) = missing_loader_of(&elf) {
        let text = format!("it cannot be run: its loader {} is not there", loader.display());
        let finding = Finding::problem("loader", text).hint("install the C library that it was built for");
        program.findings.insert(0, finding);
    }
    let needed = needed_libraries(&path, &elf, env::var_os("LD_LIBRARY_PATH").as_deref());
    let findings: Vec<_> = needed.iter().map(|(name, path)| library(name, path.as_deref(), finder)).collect();
    let mut sections = vec![program];
    if !findings.is_empty() {
        sections.push(Section {
            kind: "libraries",
            name: "The libraries that it needs".to_owned(),
            findings,
        });
    }
    Ok(sections)
}

fn library(name: &str, path: Option<&Path>, finder: &Finder) -> Finding {
    let Some(path) = path else {
        return Finding::problem("library", format!("{name}: no such library is found"))
            .hint("install it, or set LD_LIBRARY_PATH");
    };
    match Module::read(path, finder) {
        Ok(module) => module.summary(),
        Err(reason) => unreadable(path, &reason),
    }
}

/// A name without a folder that is not a file here is searched in PATH, as a shell does.
fn in_path(subject: &str) -> PathBuf {
    let here = PathBuf::from(subject);
    if subject.contains('/') || here.exists() {
        return here;
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(subject)).find(|path| path.is_file());
    found.unwrap_or(here)
}

fn open(path: &Path) -> Result<Elf<FileSource>, String> {
    let file = open_regular(path).map_err(|error| io_reason(&error))?;
    Elf::open(FileSource::new(file)).map_err(|error| error.to_string())
}

/// The program that runs a script, from its first line (execve(2), "Interpreter scripts"). For `env`, it
/// is the program in the argument of `env`.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, Failure> {
    const MAX_LINE_LEN: u64 = 256;
    let file = open_regular(path)
        .map_err(|error| Failure::io(format_args!("cannot read {}", path.display()), &error))?;
    let mut line = Vec::new();
    // A failure to read it is reported when it is opened as a program.
    let _ = BufReader::new(file.take(MAX_LINE_LEN)).read_until(b'\n', &mut line);
    Ok(interpreter_in(&String::from_utf8_lossy(&line)))
}

fn interpreter_in(line: &str) -> Option<PathBuf> {
    let mut argv = line.strip_prefix("#!")?.split_ascii_whitespace();
    let program = argv.next()?;
    if Path::new(program).file_name()? == "env" {
        return argv.find(|word| !word.starts_with('-')).map(in_path);
    }
    Some(PathBuf::from(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        let check = |line, expected: Option<&str>| {
            assert_eq!(interpreter_in(line), expected.map(PathBuf::from), "{line}");
        };
        check("#!/bin/bash -e\n", Some("/bin/bash"));
        check("#! /bin/sh\n", Some("/bin/sh"));
        check("#!/usr/bin/env -S no-such-program x\n", Some("no-such-program"));
        check("#!\n", None);
        check("\u{7f}ELF", None);
    }
}
