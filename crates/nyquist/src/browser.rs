//! Showing a served profile: in a browser if there is one, otherwise as a link.

use crate::args::{ServerArgs, Ui};
use crate::identity;
use crate::printer::Printer;
use crate::system::users::Credentials;
use crate::system::{programs, users};
use nyquist_download::accepts_connections;
use nyquist_server::{Page, Server};
use std::env;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the Firefox Profiler may take to accept a connection. After that, the built-in viewer is opened.
const REACHED_WITHIN: Duration = Duration::from_millis(300);

/// Opens the served profile, and prints its addresses and how to open them from another machine. The browser
/// gets another address than the user, because every user of this machine can read its arguments. Returns the
/// page that a browser is about to show. The Firefox Profiler shows no profile without samples (`is_empty`).
pub(crate) fn show(printer: Printer, server: &Server, args: &ServerArgs, is_empty: bool) -> Option<Page> {
    let port = server.local_addr().port();
    let ssh = env::var("SSH_CONNECTION").ok();
    let mut opened = None;
    if let Some(connection) = &ssh {
        let user = env::var("SUDO_USER").or_else(|_| env::var("USER")).unwrap_or_default();
        printer.say(format_args!("On your own machine, forward the port and open the link there:"));
        printer.say(format_args!("  {}", ssh_line(connection, &user, port)));
    } else if !args.no_open && programs::has_display() {
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

/// The command that forwards the port from the user's own machine. `connection` is `SSH_CONNECTION`:
/// the client's address and port, then the server's.
fn ssh_line(connection: &str, user: &str, port: u16) -> String {
    let mut parts = connection.split(' ').skip(2);
    let server = parts.next().unwrap_or("HOST");
    let ssh_port = parts.next().filter(|&ssh_port| ssh_port != "22");
    let ssh_port = ssh_port.map(|ssh_port| format!(" -p {ssh_port}")).unwrap_or_default();
    let at = if user.is_empty() { String::new() } else { format!("{user}@") };
    format!("ssh -L {port}:127.0.0.1:{port}{ssh_port} {at}{server}")
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
        let check = |connection, expected| assert_eq!(ssh_line(connection, "ann", 3001), expected);
        check("10.0.0.2 51234 10.0.0.9 22", "ssh -L 3001:127.0.0.1:3001 ann@10.0.0.9");
        check("10.0.0.2 51234 10.0.0.9 2222", "ssh -L 3001:127.0.0.1:3001 -p 2222 ann@10.0.0.9");
        check("", "ssh -L 3001:127.0.0.1:3001 ann@HOST");
    }
}
