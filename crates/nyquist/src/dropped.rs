//! Profiles of any format that a page of the viewer sends. A separate process reads them. If a profile needs
//! too much memory, or is damaged in an unexpected way, that process ends and the server continues.

use crate::identity;
use crate::memory::Bytes;
use nyquist_profile::Profile;
use nyquist_profile::firefox;
use std::io::{self, Read, Write as _};
use std::process::{Child, Stdio};
use std::thread;

/// The maximum size of a profile as JSON, in bytes.
const MAX_JSON_BYTES: u64 = 2 << 30;

/// How much memory a byte of JSON may take while this process reads it: the JSON itself, and the tables.
const MEMORY_A_BYTE: u64 = 4;

/// The maximum length that is read of the other process's messages.
const MAX_MESSAGE_BYTES: u64 = 64 << 10;

/// Reads a profile, as `nyquist load` does. If it is no profile, or takes more memory than `limit`, returns a
/// message about that.
pub(crate) fn read(bytes: Vec<u8>, limit: Bytes) -> Result<Profile, String> {
    let failed = |error: &io::Error| format!("the profile could not be read: {error}");
    let most = MAX_JSON_BYTES.min(limit.number() / MEMORY_A_BYTE);
    let mut child = start(limit).map_err(|error| failed(&error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // The process may end before it has read everything.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&bytes)));
    let printed = thread::spawn(move || {
        let mut printed = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MAX_MESSAGE_BYTES).read_to_end(&mut printed);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        String::from_utf8_lossy(&printed).into_owned()
    });
    let mut json = Vec::new();
    let taken = stdout.map_or(Ok(0), |stdout| stdout.take(most + 1).read_to_end(&mut json));
    let is_too_large = json.len() as u64 > most;
    if is_too_large {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    taken.map_err(|error| failed(&error))?;
    if is_too_large {
        return Err(format!(
            "the profile has more than {} MiB as JSON, too much for {limit} of memory",
            most >> 20
        ));
    }
    if !status.success() {
        let printed = printed.join().unwrap_or_default();
        return Err(reason(&printed));
    }
    firefox::read(&*json).map_err(|error| format!("the profile could not be read: {error}"))
}

/// Starts this program as a process that reads a profile of any format, and writes it in a fixed one.
fn start(limit: Bytes) -> io::Result<Child> {
    let mut command = identity::command("/proc/self/exe");
    command.arg("export").arg(format!("--max-memory={}", limit.number()));
    command.args(["--quiet", "--format", "firefox", "--output", "-", "--", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// The reason why it could not be read.
fn reason(printed: &str) -> String {
    let sentence =
        printed.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it could not be read");
    sentence.strip_prefix("cannot load -: ").unwrap_or(sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_other_process_s_sentence() {
        let printed = "warning: x\nerror: cannot load -: this is not a profile\n\nhint: y\n";
        assert_eq!(reason(printed), "this is not a profile");
        assert_eq!(reason(""), "it could not be read");
    }
}
