//! A web page of others in the user's browser, which knows the port and even the token of a server: it gets nothing.

use super::browser::{self, Page};
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_eq};
use super::invocation::Running;
use super::server::{link_of, parts_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[Test::new("a_rebound_name_gets_nothing", rebound)];

/// The number that the last answer to a page had.
const STATUS: &str = "performance.getEntriesByType('navigation')[0].responseStatus";

/// A name of the attacker's, which leads to this machine.
const NAME: &str = "rebound.example";

/// A server of a recording of the function `alpha`, its port, and the path of its page.
fn serve<'a>(test: &'a Context<'a>) -> Result<(Running<'a>, u16, String), Stop> {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let running = test.nyquist(&["load", "--no-open"]).path(&recorded.path).start()?;
    let (port, _, base) = parts_of(&link_of(&running)?)?;
    Ok((running, port, base))
}

fn browser<'a>(test: &'a Context<'a>) -> Result<Page, Stop> {
    browser::program()?;
    Page::start(test, &[&format!("--host-resolver-rules=MAP {NAME} 127.0.0.1")])
}

/// The name of a page's server is changed to be this machine's. Its origin is then that of the requests.
fn rebound(test: &Context<'_>) -> Verdict {
    let (running, port, base) = serve(test)?;
    let mut page = browser(test)?;
    page.go(&format!("http://{NAME}:{port}{base}/"))?;
    expect_eq("the status by another name", page.evaluate(STATUS)?, 403.into())?;
    let text = page.evaluate("document.documentElement.textContent")?.to_string();
    let is_secret = ["nyquist", "alpha", "shares"].iter().all(|word| !text.contains(word));
    expect(is_secret, format_args!("the page is {text}"))?;
    page.evaluate(&reading(&format!("{base}/profile.json")))?;
    page.wait_until("document.title !== ''")?;
    expect_eq("the status of a request", page.evaluate("document.title")?, "403".into())?;
    page.go(&format!("http://127.0.0.1:{port}{base}/"))?;
    expect_eq("the status by its own name", page.evaluate(STATUS)?, 200.into())?;
    end(running)
}

/// Requests something, and makes the status, or the kind of the error, the page's title.
fn reading(path: &str) -> String {
    format!(
        "void fetch('{path}').then(\
         answer => {{ document.title = String(answer.status); }}, \
         error => {{ document.title = error.name; }})"
    )
}

fn end(running: Running<'_>) -> Verdict {
    running.signal(libc::SIGINT)?;
    expect_eq("the server's status after Ctrl-C", running.wait()?.code(), 0)
}
