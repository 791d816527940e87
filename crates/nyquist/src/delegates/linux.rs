//! The processes that open files and read memory of targets for this one, and how this program becomes one of them.

use crate::identity;
use crate::system::signals::Requests;
use crate::system::targets as started;
use nyquist_convert::{Targets, answer_requests};
use nyquist_record::linux::signals::spawn_with_signals_blocked;
use nyquist_record::linux::{Preference, target_access};
use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The first argument of such a process, and the second one if it works for root alone.
const DELEGATE: &str = "--delegate";
const FOR_ROOT: &str = "--for-root";

/// Lets other processes access targets from now on, whatever the command is: the first look at a target may wait for
/// it. None is started before it is needed.
pub(crate) fn set_up() {
    targets();
}

/// The access to recorded processes, by other processes of this program.
pub(crate) fn targets() -> &'static Targets {
    started::get_or_start(|| {
        let targets = Targets::by_delegates(program, spawn_with_signals_blocked);
        target_access::access_by(targets.clone());
        targets
    })
}

fn program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("nyquist").arg(DELEGATE);
    if identity::invoking_user().is_none() {
        command.arg(FOR_ROOT);
    }
    command
}

/// Works for a recorder, if this process was started for that. Returns when the recorder is gone.
pub(crate) fn work() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != DELEGATE {
        return None;
    }
    if arguments.next().is_some_and(|word| word == FOR_ROOT) {
        identity::serve_root();
    }
    // The recorder ends it, and no signal that is meant for the recorder.
    let _requests = Requests::take_over();
    // The thread that waits for its answers has it, too: on a busy machine each answer would come late.
    let _preference = Preference::of_this_thread();
    // So it is called in lists of processes.
    let _ = fs::write("/proc/self/comm", "nyquist-files");
    let give_up = || {
        if identity::give_up_privileges().is_err() {
            std::process::exit(1);
        }
    };
    let worked = answer_requests(io::stdin(), give_up, target_access::MEMORY_CALLS);
    Some(worked.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}
