//! The traced programs that have lost the privileges that their files give, each reported once.

use std::fs;
use std::path::PathBuf;

use crate::linux::privileges;

/// The traced programs that have lost privileges.
#[derive(Debug)]
pub(crate) struct Privileges {
    /// Whether traced programs lose privileges under this tracer.
    are_kept_back: bool,
    /// The command, if its loss was reported before it began.
    command: Option<PathBuf>,
    /// All other programs.
    pub(crate) lost: Vec<PathBuf>,
}

impl Privileges {
    /// Contains no programs yet; `command` is known to lose its privileges.
    pub(crate) fn new(command: Option<PathBuf>) -> Self {
        let command = command.and_then(|file| fs::canonicalize(file).ok());
        Self { are_kept_back: !privileges::are_kept_under_ptrace(), command, lost: Vec::new() }
    }

    /// Notes the program of a process that has just called exec.
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
