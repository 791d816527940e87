//! A headless Chromium that is controlled over a pipe, with the DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Stop, skip};

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The possible names of the program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The name of the browser's program, which is installed where the tests install what they need. Skips the test if
/// there is none.
pub(crate) fn program() -> Result<&'static str, Stop> {
    crate::packages::install_browser();
    match PROGRAMS.into_iter().find(|program| Command::new(program).arg("--version").output().is_ok()) {
        Some(program) => Ok(program),
        None => skip("there is no chromium, in which pages are looked at"),
    }
}

/// A program for `BROWSER` that opens nothing, and the file to which it writes the address that it receives.
pub(crate) fn stand_in(test: &Context<'_>, name: &str) -> Result<(PathBuf, PathBuf), Stop> {
    let (opened, program) = (test.path(&format!("opened-{name}")), test.path(&format!("browser-{name}")));
    let script = format!("#!/bin/sh\necho \"$1\" > {0}.new && mv {0}.new {0}\n", opened.display());
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok((program, opened))
}

/// A page in a separate browser, which is killed when this is dropped.
pub(crate) struct Page {
    browser: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    sent: u64,
}

impl Page {
    /// Opens a file in a window of this size. Skips the test if there is no browser.
    pub(crate) fn open(test: &Context<'_>, file: &Path, width: u32, height: u32) -> Result<Self, Stop> {
        let mut page = Self::start(test, &[])?;
        page.resize(width, height)?;
        page.go(&format!("file://{}", file.display()))?;
        Ok(page)
    }

    /// Starts a browser with further arguments. Skips the test if there is none.
    pub(crate) fn start(test: &Context<'_>, arguments: &[&str]) -> Result<Self, Stop> {
        let program = program()?;
        // The protocol uses descriptors 3 and 4. A shell makes them from the standard ones.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", program]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", test.fresh("browser").display())).args(arguments);
        test.mark(&mut command);
        let mut browser = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = browser.stdin.take().context("its input is piped")?;
        let output = browser.stdout.take().context("its output is piped")?;
        let (sender, messages) = mpsc::channel();
        // This thread ends with the browser.
        thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let parsed = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if sender.send(parsed).is_err() {
                    return;
                }
            }
        });
        let mut page = Self { browser, input, messages, session: None, sent: 0 };
        let target = page.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        page.session = page.call("Target.attachToTarget", &attach)?["sessionId"].as_str().map(str::to_owned);
        Ok(page)
    }

    /// Opens an address, and waits until all of it is there.
    pub(crate) fn go(&mut self, url: &str) -> Result<(), Stop> {
        self.call("Page.navigate", &json!({"url": url}))?;
        self.wait_until(&format!("location.href === {} && document.readyState === 'complete'", json!(url)))
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&mut self, width: u32, height: u32) -> Result<(), Stop> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size).map(drop)
    }

    /// The value of a JavaScript expression.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value, Stop> {
        let result =
            self.call("Runtime.evaluate", &json!({"expression": expression, "returnByValue": true}))?;
        match result.get("exceptionDetails") {
            Some(exception) => Err(Stop::Failed(format!("{expression}: {exception}"))),
            None => Ok(result["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_until(&mut self, expression: &str) -> Result<(), Stop> {
        let end = Instant::now() + PATIENCE;
        while self.evaluate(expression)? != json!(true) {
            if Instant::now() > end {
                return Err(Stop::Failed(format!("waited in vain until {expression}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Moves the mouse to the middle of the element that an expression returns, and optionally clicks there.
    /// The element is scrolled into view first, because the height of a picture depends on the sampled
    /// stacks.
    pub(crate) fn point(&mut self, element: &str, clicks: bool) -> Result<(), Stop> {
        let middle = format!(
            "(() => {{ const element = {element}; \
             const middle = () => {{ const box = element.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }}; \
             if (!document.elementFromPoint(...middle())) element.scrollIntoView({{block: 'center'}}); \
             return middle(); }})()"
        );
        let place = self.evaluate(&middle)?;
        let kinds: &[&str] =
            if clicks { &["mouseMoved", "mousePressed", "mouseReleased"] } else { &["mouseMoved"] };
        for kind in kinds {
            let button = if *kind == "mouseMoved" { "none" } else { "left" };
            let event =
                json!({"type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event)?;
        }
        Ok(())
    }

    /// Presses a key by its name.
    pub(crate) fn press(&mut self, key: &str) -> Result<(), Stop> {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", &json!({"type": kind, "key": key}))?;
        }
        Ok(())
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, Stop> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes())?;
        loop {
            let answer = self.messages.recv_timeout(PATIENCE);
            let answer = answer
                .map_err(|error| Stop::Failed(format!("no answer to {method} of the browser: {error}")))?;
            if answer["id"] == json!(self.sent) {
                return match answer.get("error") {
                    Some(error) => Err(Stop::Failed(format!("{method}: {error}"))),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // If it has ended already, there is nothing to do.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
