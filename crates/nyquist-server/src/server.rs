//! The server itself: opens a port, accepts connections, and ends.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::config::{Config, PortChoice};
use crate::error::ServerError;
use crate::hosts::AllowedHosts;
use crate::links;
use crate::one_time::{self, OneTimeLink};
use crate::peer_user::Owners;
use crate::router::{self, Sender, Site};
use crate::stall::StallGuard;
use crate::stored_profile::StoredProfile;
use crate::symbol_source::SymbolSource;
use crate::token::Token;
use crate::unauthenticated_connections::{Admission, Owner, UnauthenticatedConnections};
use crate::viewer::Viewer;

/// The maximum size of a request's header.
const HEAD_BYTES: usize = 64 << 10;

/// The pause after accepting failed, which happens if the process has no free file descriptor.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A server that has its port and does not respond yet: connections wait until [`Server::run`].
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    user: Option<u32>,
    site: Arc<Site>,
    shutdown: ShutdownHandle,
}

/// A page that shows the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The front end of another host, by [`Config::front_end`].
    FrontEnd,
    /// The viewer that is served beside the profile.
    Viewer,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct ShutdownHandle(Arc<watch::Sender<bool>>);

impl ShutdownHandle {
    /// Makes [`Server::run`] return: immediately, or when the responses in progress are sent, but no later
    /// than [`crate::Limits::shutdown_grace`]. A server that has not run yet will not. May be called more
    /// than once.
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Opens a port and makes the token. `profile` is the stored document, compressed or not; it is
    /// served unchanged. If there is none yet during a recording, the viewer writes the data so
    /// far. It does so for the request `profile.json`.
    ///
    /// # Errors
    /// If there is no free port, or the system provides no random bytes.
    pub fn bind(
        config: Config,
        profile: Option<StoredProfile>,
        symbols: Arc<dyn SymbolSource>,
    ) -> Result<Self, ServerError> {
        let token = Token::random().map_err(ServerError::NoRandomness)?;
        let listener = listen(config.address, config.port)?;
        let local_addr = listener.local_addr().map_err(ServerError::EventLoop)?;
        let symbol_server = format!("{}/{}", links::origin(local_addr), token.as_str());
        let profile_url = format!("{symbol_server}/profile.json?{}", links::WITHOUT_COUNTERS);
        let open_url = links::from_url(&config.front_end, &profile_url, &symbol_server);
        let site = Site {
            token,
            hosts: AllowedHosts::new(local_addr.ip()),
            one_time: OnceLock::new(),
            front_end_origin: links::origin_of(&config.front_end)
                .and_then(|origin| HeaderValue::try_from(origin).ok()),
            profile: profile.map(Arc::new),
            symbols,
            viewer: None,
            open_url,
            opening: Semaphore::new(1),
            lookups: Arc::new(Semaphore::new(config.limits.lookups.into())),
            limits: config.limits,
        };
        let shutdown = ShutdownHandle(Arc::new(watch::Sender::new(false)));
        Ok(Self { listener, local_addr, user: config.user, site: Arc::new(site), shutdown })
    }

    /// Serves a viewer beside the profile.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Arc<dyn Viewer>) -> Self {
        if let Some(site) = Arc::get_mut(&mut self.site) {
            site.viewer = Some(viewer);
        }
        self
    }

    /// The bound address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The secret at the start of every path.
    pub fn token(&self) -> &str {
        self.site.token.as_str()
    }

    /// The address of the symbol server API; the paths `symbolicate/v5`, `source/v1` and `asm/v1` are
    /// below it.
    pub fn symbol_server_url(&self) -> String {
        format!("{}/{}", links::origin(self.local_addr), self.token())
    }

    /// The address of the profile.
    pub fn profile_url(&self) -> String {
        format!("{}/profile.json", self.symbol_server_url())
    }

    /// The address that opens the profile in the front end. It contains the token.
    pub fn open_url(&self) -> String {
        self.site.open_url.clone()
    }

    /// The address of the viewer that is served beside the profile. It contains the token.
    pub fn viewer_url(&self) -> String {
        format!("{}/", self.symbol_server_url())
    }

    /// The address of a page that shows the profile. It contains the token.
    fn url_of(&self, page: Page) -> String {
        match page {
            Page::FrontEnd => self.open_url(),
            Page::Viewer => self.viewer_url(),
        }
    }

    /// An address for the arguments of a browser, which all users of this machine can read. It leads to a
    /// page that shows the profile once, within a minute, and only to connections of [`Config::user`].
    /// `None` if such an address is not available. There is only one of them: further calls return the
    /// same page.
    pub fn one_time_url(&self, page: Page) -> Option<String> {
        let user = self.user?;
        let link = match self.site.one_time.get() {
            Some(link) => link,
            None => {
                let target = HeaderValue::try_from(self.url_of(page)).ok()?;
                let link = OneTimeLink::new(Token::random().ok()?, target, user, one_time::LIFETIME);
                self.site.one_time.get_or_init(|| link)
            }
        };
        Some(format!("{}{}", links::origin(self.local_addr), link.path()))
    }

    /// A handle that ends [`Server::run`].
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shutdown.clone()
    }

    /// Serves until it is shut down. Blocks the calling thread, which must not belong to an async runtime. A
    /// lookup that is still running afterwards is not awaited, and its result is dropped.
    ///
    /// # Errors
    /// If the event loop cannot be set up. Once it runs, only a shutdown ends it.
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
            () = accept(&listener, &self.site, Owners::new(self.user), &connections, &self.shutdown.0) => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
        drop(listener);
        let all = connections.acquire_many(self.site.limits.connections.into());
        let _ = timeout(self.site.limits.shutdown_grace, all).await;
        Ok(())
    }
}

/// Opens the port. In a range, a port that only the superuser may use counts as in use.
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

/// Accepts connections forever. Each is a separate task, so a panic in one ends only that one. If all
/// slots are in use, the oldest unauthenticated connection is closed.
async fn accept(
    listener: &tokio::net::TcpListener,
    site: &Arc<Site>,
    owners: Owners,
    connections: &Arc<Semaphore>,
    ended: &watch::Sender<bool>,
) {
    let unauthenticated =
        UnauthenticatedConnections::new(site.limits.unauthenticated, site.limits.unauthenticated_timeout);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let owner = owners.of(&stream);
        let admission = unauthenticated.admit(owner);
        let Some(permit) = place(connections, &unauthenticated, owner).await else { return };
        tokio::spawn(serve_connection(stream, admission, Arc::clone(site), ended.subscribe(), permit));
        // Data received on this connection is read before others are accepted, because these could make it
        // the oldest.
        yield_now().await;
    }
}

/// A slot for one more connection.
async fn place(
    connections: &Arc<Semaphore>,
    unauthenticated: &UnauthenticatedConnections,
    newest: Owner,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(connections).try_acquire_owned() {
        return Some(permit);
    }
    unauthenticated.evict_for(newest);
    Arc::clone(connections).acquire_owned().await.ok()
}

/// Serves one connection to its end. Errors on it concern only its client.
async fn serve_connection(
    stream: TcpStream,
    admission: Admission,
    site: Arc<Site>,
    mut ended: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let between = stream.peer_addr().ok().zip(stream.local_addr().ok());
    let stream = TokioIo::new(StallGuard::new(stream, site.limits.stall_timeout));
    let header_timeout = site.limits.header_timeout;
    let (authentication, eviction) = admission.split();
    let sender = Arc::new(Sender { authentication, between });
    let service = service_fn(move |request| {
        let (site, sender) = (Arc::clone(&site), Arc::clone(&sender));
        async move { Ok::<_, Infallible>(router::answer(&site, request, &sender).await) }
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
        () = eviction.wait() => return,
        _ = ended.wait_for(|ended| *ended) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
