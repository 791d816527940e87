//! Showing a served profile: in a browser if there is one, otherwise as a link.

use crate::args::{ServerArgs, Ui};
use crate::identity;
use crate::printer::Printer;
use crate::shell::quoted;
use crate::system::users::Credentials;
use crate::system::{programs, users};
use nyquist_download::accepts_connections;
use nyquist_server::{Page, Server};
use std::env;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the Firefox Profiler may take to accept a connection. After that, the built-in viewer is opened.
const REACHED_WITHIN: Duration = Duration::from_millis(300);

/// Opens the served profile, and prints its addresses and how to open them from another machine. The browser
/// gets another address than the user, because every user of this machine can read its arguments. Returns the
/// page that a browser is about to show. The Firefox Profiler shows no profile without samples (`is_empty`).
pub(crate) fn show(printer: Printer, server: &Server, args: &ServerArgs, is_empty: bool) -> Option<Page> {
    let port = server.local_addr().port();
    let ssh = programs::ssh_connection(identity::invoking_user().is_some())
        .and_then(|connection| SshServer::of(&connection));
    let mut opened = None;
    if let Some(host) = &ssh {
        printer.say("On your own machine, forward the port and open the link there:");
        printer.say(format_args!("  {}", ssh_line(host, port)));
    } else if !programs::has_display() {
        printer.say(
            "There is no display here. On a machine that has one, forward the port and open the link there:",
        );
        printer.say(format_args!("  {}", ssh_line(&SshServer::of_this_machine(), port)));
    } else if !args.no_open {
        opened = Some(chosen_page(args, is_empty)).filter(|&page| open_once(server, page));
    }
    if opened.is_some() {
        printer.say("Opening the profile in your browser");
    }
    printer.say(format_args!("  Firefox Profiler  {}", server.open_url()));
    printer.say(format_args!("  Built-in viewer   {}", server.viewer_url()));
    opened
}

/// The page to open in a browser.
fn chosen_page(args: &ServerArgs, is_empty: bool) -> Page {
    let is_viewer = match args.ui {
        Ui::Firefox => false,
        Ui::Builtin => true,
        Ui::Auto => is_empty || !accepts_connections(&args.profiler_url, REACHED_WITHIN),
    };
    if is_viewer { Page::Viewer } else { Page::FrontEnd }
}

/// The SSH server of this machine, as it is reached from the user's own.
#[derive(Debug, PartialEq, Eq)]
struct SshServer {
    host: String,
    port: u16,
}

impl SshServer {
    /// The one in `SSH_CONNECTION`: the client's address and port, then the server's.
    fn of(connection: &str) -> Option<Self> {
        let mut parts = connection.split(' ').skip(2);
        let host: IpAddr = parts.next()?.parse().ok()?;
        Some(Self { host: host.to_string(), port: parts.next()?.parse().ok()? })
    }

    fn of_this_machine() -> Self {
        Self { host: programs::host_name().unwrap_or_else(|| "HOST".to_owned()), port: 22 }
    }
}

/// The command that forwards the port from the user's own machine.
fn ssh_line(server: &SshServer, port: u16) -> String {
    let user = env::var("SUDO_USER").or_else(|_| env::var("USER")).unwrap_or_default();
    ssh_line_of(&user, server, port)
}

fn ssh_line_of(user: &str, server: &SshServer, port: u16) -> String {
    let ssh_port = if server.port == 22 { String::new() } else { format!(" -p {}", server.port) };
    let at = if user.is_empty() { server.host.clone() } else { format!("{user}@{}", server.host) };
    format!("ssh -L {port}:127.0.0.1:{port}{ssh_port} {}", quoted(at.as_ref()))
}

/// Opens the profile by a link that is valid once, as the user of the browser.
fn open_once(server: &Server, page: Page) -> bool {
    let user = identity::user_at_the_browser();
    server.one_time_url(page).is_some_and(|url| launch(&url, user.as_ref()))
}

/// Starts the first available browser or opener. If it fails, it has ended. Its output is discarded.
fn launch(url: &str, user: Option<&Credentials>) -> bool {
    for opener in programs::link_openers() {
        let mut command = Command::new(opener);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        programs::detach(&mut command);
        if let Some(user) = user {
            users::run_as(&mut command, user);
        }
        if let Ok(mut child) = command.spawn() {
            // The opener ends by itself. Waiting for it in another thread prevents a zombie.
            std::thread::spawn(move || child.wait());
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ssh_line_can_be_typed_as_it_is() {
        let line = |user, connection| ssh_line_of(user, &SshServer::of(connection).unwrap(), 3001);
        assert_eq!(line("ann", "10.0.0.2 51234 10.0.0.9 22"), "ssh -L 3001:127.0.0.1:3001 ann@10.0.0.9");
        assert_eq!(
            line("ann", "10.0.0.2 51234 10.0.0.9 2222"),
            "ssh -L 3001:127.0.0.1:3001 -p 2222 ann@10.0.0.9"
        );
        assert_eq!(line("", "::2 51234 ::9 22"), "ssh -L 3001:127.0.0.1:3001 ::9");
    }

    #[test]
    fn what_is_no_connection_gives_no_line() {
        for connection in ["", "10.0.0.2 51234", "10.0.0.2 51234 $(date) 22", "a b c d"] {
            assert_eq!(SshServer::of(connection), None, "{connection}");
        }
    }
}
