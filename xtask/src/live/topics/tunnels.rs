//! What is printed for a browser on another machine: the command of SSH that forwards the port.

use super::context::Context;
use super::expect::{Verdict, expect, expect_eq};
use super::invocation::Running;
use super::server::{link_of, parts_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("over_ssh_a_tunnel_line_is_printed", over_ssh),
    Test::new("without_a_display_a_tunnel_is_offered", without_display),
];

fn over_ssh(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let opened = test.path("a-browser-was-opened");
    let browser = test.path("browser");
    std::fs::write(&browser, format!("#!/bin/sh\ntouch {}\n", opened.display()))?;
    expect(std::process::Command::new("chmod").arg("755").arg(&browser).status()?.success(), "chmod failed")?;
    let call = test.nyquist(&["load"]).path(&recorded.path).env("BROWSER", browser.display().to_string());
    let running = call.env("SSH_CONNECTION", "10.0.0.1 5000 10.0.0.2 22").start()?;
    let link = link_of(&running)?;
    let (port, ..) = parts_of(&link)?;
    let tunnel = format!("-L {port}:");
    running.wait_until("the line of a tunnel", || {
        let text = running.stdout_so_far() + &running.stderr_so_far();
        text.contains("ssh ") && text.contains(&tunnel)
    })?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status", running.wait()?.code(), 0)?;
    expect(!opened.exists(), "a browser was opened")
}

fn without_display(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let call = test.nyquist(&["load"]).path(&recorded.path).env("DISPLAY", "").env("WAYLAND_DISPLAY", "");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    expect_tunnel(&call.env("BROWSER", "").start()?, host.trim())
}

/// The line of a tunnel to this server, which ends with these words, is printed.
fn expect_tunnel(running: &Running<'_>, args: &str) -> Verdict {
    let link = link_of(running)?;
    let (port, ..) = parts_of(&link)?;
    let start = format!("ssh -L {port}:127.0.0.1:{port} ");
    running.wait_until("the line of a tunnel", || {
        let text = running.stdout_so_far() + &running.stderr_so_far();
        text.lines().any(|line| line.trim().starts_with(&start) && line.ends_with(args))
    })?;
    Ok(())
}
