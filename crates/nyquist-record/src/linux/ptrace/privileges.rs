//! Which traced programs have lost the privileges that their files give, each told of once.

use std::fs;
use std::path::PathBuf;

use crate::linux::privileges;

/// The traced programs that have lost privileges.
#[derive(Debug)]
pub(crate) struct Privileges {
    /// Whether this tracer keeps any from the programs that it traces.
    are_kept_back: bool,
    /// The command, where its loss was told of before it began.
    command: Option<PathBuf>,
    /// All others.
    pub(crate) lost: Vec<PathBuf>,
}

impl Privileges {
    /// None lost yet; `command` is known to lose its own.
    pub(crate) fn new(command: Option<PathBuf>) -> Self {
        let command = command.and_then(|file| fs::canonicalize(file).ok());
        Self { are_kept_back: !privileges::are_kept_under_ptrace(), command, lost: Vec::new() }
    }

    /// Takes note of the program that a process has just become.
    pub(crate) fn note_exec(&mut self, pid: u32) {
        if !self.are_kept_back {
            return;
        }
        if let Some(program) = privileges::were_lost(pid)
            && self.command.as_ref() != Some(&program)
            && !self.lost.contains(&program)
        {
            self.lost.push(program);
        }
    }
}
