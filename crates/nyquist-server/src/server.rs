//! The server itself: taking a port, accepting connections, ending.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::config::{Config, PortChoice};
use crate::error::ServerError;
use crate::hosts::AllowedHosts;
use crate::links;
use crate::router::{self, Site};
use crate::stall::StallGuard;
use crate::symbol_source::SymbolSource;
use crate::token::Token;

/// The longest head of a request.
const HEAD_BYTES: usize = 64 << 10;

/// How long accepting rests after it failed, which it does where the process has no file descriptor left.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A server that has its port and does not answer yet: connections wait until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    site: Arc<Site>,
    shutdown: ShutdownHandle,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct ShutdownHandle(Arc<watch::Sender<bool>>);

impl ShutdownHandle {
    /// Makes [`Server::run`] return: at once, or when the answers under way are out and no later than
    /// [`crate::Limits::shutdown_grace`]. A server that has not run yet will not. May be called more than once.
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Takes a port and makes up the token. `profile` is the file as it is stored, compressed or not; it is
    /// served as it is.
    ///
    /// # Errors
    /// Where no port can be had, or the system gives no random bytes.
    pub fn bind(
        config: Config,
        profile: Vec<u8>,
        symbols: Arc<dyn SymbolSource>,
    ) -> Result<Self, ServerError> {
        let token = Token::random().map_err(ServerError::NoRandomness)?;
        let listener = listen(config.address, config.port)?;
        let local_addr = listener.local_addr().map_err(ServerError::EventLoop)?;
        let site = Site {
            token,
            hosts: AllowedHosts::new(local_addr.ip()),
            profile: profile.into(),
            symbols,
            lookups: Arc::new(Semaphore::new(config.limits.lookups.into())),
            limits: config.limits,
        };
        let shutdown = ShutdownHandle(Arc::new(watch::Sender::new(false)));
        Ok(Self { listener, local_addr, site: Arc::new(site), shutdown })
    }

    /// The address and port that were taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The secret that every path starts with.
    pub fn token(&self) -> &str {
        self.site.token.as_str()
    }

    /// Where the symbol server API is; the paths `symbolicate/v5`, `source/v1` and `asm/v1` are below it.
    pub fn symbol_server_url(&self) -> String {
        format!("{}/{}", links::origin(self.local_addr), self.token())
    }

    /// Where the profile is.
    pub fn profile_url(&self) -> String {
        format!("{}/profile.json", self.symbol_server_url())
    }

    /// The address that opens the profile in a front end such as `https://profiler.firefox.com`.
    pub fn open_url(&self, front_end: &str) -> String {
        links::from_url(front_end, &self.profile_url(), &self.symbol_server_url())
    }

    /// What ends [`Server::run`].
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shutdown.clone()
    }

    /// Serves until it is shut down. Blocks the calling thread, which must not be one of an async runtime. A
    /// lookup that is still at work afterwards is left to itself and its result dropped.
    ///
    /// # Errors
    /// Where the event loop cannot be set up; once it runs nothing ends it but the shutdown.
    pub fn run(self) -> Result<(), ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(usize::from(self.site.limits.lookups).max(1))
            .thread_name("nyquist-lookup")
            .build()
            .map_err(ServerError::EventLoop)?;
        let served = runtime.block_on(self.serve());
        runtime.shutdown_background();
        served.map_err(ServerError::EventLoop)
    }

    async fn serve(self) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let connections = Arc::new(Semaphore::new(self.site.limits.connections.into()));
        let mut ended = self.shutdown.0.subscribe();
        tokio::select! {
            () = accept(&listener, &self.site, &connections, &self.shutdown.0) => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
        drop(listener);
        let all = connections.acquire_many(self.site.limits.connections.into());
        let _ = timeout(self.site.limits.shutdown_grace, all).await;
        Ok(())
    }
}

/// Takes the port. A port that only the superuser may take counts as taken in a range.
fn listen(address: IpAddr, port: PortChoice) -> Result<TcpListener, ServerError> {
    let (first, last) = match port {
        PortChoice::Fixed(port) => return listen_on(SocketAddr::new(address, port)),
        PortChoice::FirstFreeFrom { first, tries } => (first, first.saturating_add(tries.saturating_sub(1))),
    };
    for port in first..=last {
        match listen_on(SocketAddr::new(address, port)) {
            Err(ServerError::Listen { source, .. }) if is_taken(&source) => {}
            other => return other,
        }
    }
    Err(ServerError::NoFreePort { address, first, last })
}

fn listen_on(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).map_err(|source| ServerError::Listen { address, source })
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

/// Accepts connections for ever, each a task of its own: a panic in one ends that one.
async fn accept(
    listener: &tokio::net::TcpListener,
    site: &Arc<Site>,
    connections: &Arc<Semaphore>,
    ended: &watch::Sender<bool>,
) {
    while let Ok(permit) = Arc::clone(connections).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_connection(stream, Arc::clone(site), ended.subscribe(), permit));
            }
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Serves one connection to its end. What goes wrong on it is its client's business alone.
async fn serve_connection(
    stream: TcpStream,
    site: Arc<Site>,
    mut ended: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(StallGuard::new(stream, site.limits.stall_timeout));
    let header_timeout = site.limits.header_timeout;
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(router::answer(&site, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES)
        .half_close(true)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ended.wait_for(|ended| *ended) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
