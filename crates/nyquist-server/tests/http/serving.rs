//! A server on a separate thread, with a symbol source for one lib.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use nyquist_object::RelativeAddress;
use nyquist_server::{
    AddressInfo, Assembly, AssemblyInstruction, AssemblyRequest, Config, InlineFrame, LibKey, Limits,
    LookupError, PortChoice, Server, ServerError, ShutdownHandle, SourceRequest, SymbolSource,
};

use crate::client::{Client, Reply};

/// The id of the lib `prog`.
pub(crate) const ID: &str = "6C974EBE5232EE469D6B7847A670B2A90";

/// The profile. It only needs to begin like gzip.
pub(crate) const PROFILE: &[u8] = b"\x1f\x8b\x08 compressed";

/// A running server, which is shut down when this is dropped.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) shutdown: ShutdownHandle,
    pub(crate) thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Serving {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), PROFILE.to_vec(), FakeSymbols::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::with(limits, PROFILE.to_vec(), FakeSymbols::default())
    }

    pub(crate) fn with(limits: Limits, profile: Vec<u8>, symbols: FakeSymbols) -> Self {
        let config = Config { port: PortChoice::Fixed(0), limits, ..Config::default() };
        Self::of(Server::bind(config, Some(profile.into()), Arc::new(symbols)).unwrap())
    }

    /// Runs a server.
    pub(crate) fn of(server: Server) -> Self {
        let (address, token) = (server.local_addr(), server.token().to_owned());
        let shutdown = server.shutdown_handle();
        let thread = Some(thread::spawn(move || server.run()));
        Self { address, token, shutdown, thread }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Sends a request for a path below the token on a separate connection.
    pub(crate) fn ask(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.connect().request(&self.head(method, path), body.as_ref())
    }

    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        match path.split_once('\n') {
            Some((path, headers)) => format!("{method} /{}/{path}\n{headers}", self.token),
            None => format!("{method} /{}/{path}", self.token),
        }
    }

    /// Shuts down and waits for the end.
    pub(crate) fn end(&mut self) {
        self.shutdown.shut_down();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic in the server").expect("no error from the server");
        }
    }

    /// Asserts that the server still works.
    pub(crate) fn assert_well(&self) {
        assert_eq!(self.ask("GET", "profile.json", "").body.len(), PROFILE.len());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

/// Knows the lib `prog`, and panics for `panic`. For `gate` it reports the call and waits to be released.
#[derive(Default)]
pub(crate) struct FakeSymbols {
    gate: Option<(Sender<()>, Mutex<Receiver<()>>)>,
}

impl FakeSymbols {
    /// A source with a gate. The receiver gets a message on a call, and the sender releases it.
    pub(crate) fn with_gate() -> (Self, Receiver<()>, Sender<()>) {
        let (requests, was_requested) = channel();
        let (open, opened) = channel();
        (Self { gate: Some((requests, Mutex::new(opened))) }, was_requested, open)
    }

    fn pass_gate(&self) {
        let (requests, opened) = self.gate.as_ref().expect("a source with a gate");
        requests.send(()).unwrap();
        let _ = opened.lock().unwrap().recv();
    }
}

impl SymbolSource for FakeSymbols {
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        assert!(addresses.is_sorted_by(|a, b| a < b), "ascending, without duplicates");
        match &*lib.debug_name {
            "prog" if lib.breakpad_id == ID => Some(addresses.iter().map(|address| info(*address)).collect()),
            "short" => Some(Vec::new()),
            "panic" => panic!("a panic that a test requested"),
            "gate" => {
                self.pass_gate();
                None
            }
            _ => None,
        }
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        let lib = request.lib.clone();
        match (&*lib.debug_name, &*request.file) {
            ("prog", "/src/foo.cc") if request.address == RelativeAddress(0x510) => {
                Ok("int f();\n".to_owned())
            }
            ("prog", file) => Err(LookupError::SourceNotNamed { file: file.to_owned(), lib }),
            _ => Err(LookupError::UnknownLib(lib)),
        }
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        if request.lib.debug_name != "prog" {
            return Err(LookupError::UnknownLib(request.lib.clone()));
        }
        let instruction = |(offset, text): (u32, &str)| AssemblyInstruction { offset, text: text.to_owned() };
        Ok(Assembly {
            start: request.start,
            size: if request.continue_until_function_end { 0x40 } else { request.size },
            arch: "x86_64".to_owned(),
            syntax: "Intel".to_owned(),
            instructions: [(0, "push rbp"), (1, "mov rbp, rsp")].map(instruction).to_vec(),
        })
    }
}

/// `f` with all data, `h` with only its name, and no function anywhere else.
fn info(address: RelativeAddress) -> Option<AddressInfo> {
    match address.0 {
        0x1380 => Some(AddressInfo {
            function: "f".to_owned(),
            function_offset: 7,
            function_size: Some(0x40),
            file: Some("/a.c".to_owned()),
            line: Some(5),
            inlines: vec![
                InlineFrame { function: Some("inner".to_owned()), file: None, line: None },
                InlineFrame { function: Some("g".to_owned()), file: Some("h".to_owned()), line: Some(3) },
            ],
        }),
        0x1276 => Some(AddressInfo { function: "h".to_owned(), ..AddressInfo::default() }),
        _ => None,
    }
}
