//! `nyquist ctl`: asks a running recording to start, pause, save, or say what it does.

mod folder;
mod message;
mod socket;

pub(crate) use message::CtlAnswer;
pub(crate) use socket::{ControlSocket, CtlRequest};

use crate::args::{CtlAction, CtlArgs, NOT_UNDERSTOOD};
use crate::failure::Failure;
use crate::page;
use crate::text::one_line;
use folder::{FoundSocket, SocketFolder};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long an answer may take. A large recording's names are looked up before it is saved.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// The longest answer, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// Runs the subcommand.
pub(crate) fn run(args: &CtlArgs) -> Result<(), Failure> {
    let (pid, action) = args.parsed().map_err(|text| Failure::new(text).status(NOT_UNDERSTOOD))?;
    let socket = choose(pid)?;
    let answer = ask(&socket, action).map_err(|error| {
        Failure::io(format_args!("the recording {} does not answer", socket.pid), &error)
            .hint("`nyquist ctl status` works while it records, not while it saves at the end")
    })?;
    if args.json {
        page::print_json(&serde_json::to_value(&answer).unwrap_or_default())?;
    }
    if let Some(error) = answer.error {
        return Err(Failure::new(one_line(&error)));
    }
    if !args.json {
        page::print(answer.text())?;
    }
    Ok(())
}

/// The recording that is meant: the one with this number, the one that records the process with this number, or the
/// only one. Those of other users, which root may control, only by their numbers.
fn choose(pid: Option<u32>) -> Result<FoundSocket, Failure> {
    let mut found = sockets(SocketFolder::own(), pid);
    if found.is_empty() && pid.is_some() {
        found = sockets(SocketFolder::of_others(), pid);
    }
    let numbers: Vec<_> = found.iter().map(|socket| socket.pid.to_string()).collect();
    let Some(first) = found.pop() else {
        let which = pid.map_or_else(
            || "no recording".to_owned(),
            |pid| format!("no recording of or with the number {pid}"),
        );
        return Err(Failure::new(format!("{which} obeys `nyquist ctl` here")).hint(
            "recordings obey that were started with --last, --delay, --start-paused or --ctl, by the same user",
        ));
    };
    if !found.is_empty() {
        return Err(Failure::new(format!("several recordings run: {}", numbers.join(", ")))
            .hint(format!("name one: nyquist ctl {} status", first.pid))
            .status(NOT_UNDERSTOOD));
    }
    Ok(first)
}

/// The sockets of recordings with or of this number, or of all, by their numbers.
fn sockets(folders: Vec<SocketFolder>, pid: Option<u32>) -> Vec<FoundSocket> {
    let mut found: Vec<_> = folders.into_iter().flat_map(SocketFolder::sockets).collect();
    found.retain(|socket| pid.is_none_or(|pid| socket.pid == pid || socket.recorded.contains(&pid)));
    found.sort_by_key(|socket| socket.pid);
    found
}

fn ask(socket: &FoundSocket, action: CtlAction) -> io::Result<CtlAnswer> {
    let mut stream: UnixStream = socket.connect()?;
    stream.set_read_timeout(Some(MAX_WAIT))?;
    writeln!(stream, "{}", action.word())?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}
