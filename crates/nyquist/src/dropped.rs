//! Profiles of any format that a page of the viewer sends. A separate process reads them. If a profile needs
//! too much memory, or is damaged in an unexpected way, that process ends and the server continues.

use nyquist_profile::Profile;
use nyquist_profile::firefox;
use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

/// The maximum size of a profile as JSON, in bytes.
const MAX_JSON_BYTES: u64 = 2 << 30;

/// The maximum length that is read of the other process's messages.
const MAX_MESSAGE_BYTES: u64 = 64 << 10;

/// Reads a profile, as `nyquist load` does. If it is no profile, or too large, returns a message about that.
pub(crate) fn read(bytes: Vec<u8>) -> Result<Profile, String> {
    let failed = |error: &io::Error| format!("the profile could not be read: {error}");
    let mut child = start().map_err(|error| failed(&error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // The process may end before it has read everything.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&bytes)));
    let said = thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MAX_MESSAGE_BYTES).read_to_end(&mut said);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let mut json = Vec::new();
    let taken = stdout.map_or(Ok(0), |stdout| stdout.take(MAX_JSON_BYTES + 1).read_to_end(&mut json));
    let is_too_large = json.len() as u64 > MAX_JSON_BYTES;
    if is_too_large {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    taken.map_err(|error| failed(&error))?;
    if is_too_large {
        return Err(format!("the profile is larger than {} MiB of JSON", MAX_JSON_BYTES >> 20));
    }
    if !status.success() {
        let said = said.join().unwrap_or_default();
        return Err(reason(&said));
    }
    firefox::read(&*json).map_err(|error| format!("the profile could not be read: {error}"))
}

/// Starts this program as a process that reads a profile of any format, and writes it in a fixed one.
fn start() -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["export", "--quiet", "--format", "firefox", "--output", "-", "--", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// The reason why it could not be read.
fn reason(said: &str) -> String {
    let sentence =
        said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it could not be read");
    sentence.strip_prefix("cannot load -: ").unwrap_or(sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_other_process_s_sentence() {
        let said = "warning: x\nerror: cannot load -: this is not a profile\n\nhint: y\n";
        assert_eq!(reason(said), "this is not a profile");
        assert_eq!(reason(""), "it could not be read");
    }
}
