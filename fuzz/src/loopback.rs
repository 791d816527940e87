//! A server on loopback that lives as long as the fuzz target, and one connection to it for each input.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nyquist_object::RelativeAddress;
use nyquist_server::{
    AddressInfo, Assembly, AssemblyInstruction, AssemblyRequest, Config, InlineFrame, LibKey, Limits,
    LookupError, PortChoice, Server, SourceRequest, SymbolSource,
};

/// How long an answer may take before it counts as a hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running server.
pub struct Loopback {
    address: SocketAddr,
    /// The secret with which paths begin.
    pub token: String,
}

/// The server of this process.
pub fn server() -> &'static Loopback {
    static SERVER: OnceLock<Loopback> = OnceLock::new();
    SERVER.get_or_init(start)
}

fn start() -> Loopback {
    let limits = Limits { answer_bytes: 1 << 20, ..Limits::default() };
    let config = Config { port: PortChoice::Fixed(0), limits, ..Config::default() };
    let server =
        Server::bind(config, Some(b"{}".to_vec().into()), Arc::new(Names)).expect("a port of loopback");
    let started = Loopback { address: server.local_addr(), token: server.token().to_owned() };
    std::thread::spawn(move || server.run().expect("an event loop"));
    started
}

impl Loopback {
    /// The host and port that requests name.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Sends bytes, says that there are no more, and gives back everything that is answered. A server that does
    /// not close the connection is a finding.
    pub fn exchange(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        // The server may refuse a request before its end: writing then fails, and the answer says why.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server does not answer");
        }
        answer
    }
}

/// Knows something of every address whose lowest bit is not set.
pub struct Names;

impl SymbolSource for Names {
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        assert!(addresses.is_sorted_by(|a, b| a < b), "ascending and without duplicates");
        let info = |address: &RelativeAddress| AddressInfo {
            function: lib.to_string(),
            function_offset: address.0,
            function_size: Some(address.0),
            file: Some("/source.c".to_owned()),
            line: Some(address.0),
            inlines: vec![InlineFrame::default()],
        };
        let known = |address: &RelativeAddress| (address.0 & 1 == 0).then(|| info(address));
        (!lib.debug_name.is_empty()).then(|| addresses.iter().map(known).collect())
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        Err(LookupError::SourceNotNamed { lib: request.lib.clone(), file: request.file.clone() })
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        Ok(Assembly {
            start: request.start,
            size: request.size,
            arch: "x86_64".to_owned(),
            syntax: "Intel".to_owned(),
            instructions: vec![AssemblyInstruction { offset: 0, text: request.lib.to_string() }],
        })
    }
}
