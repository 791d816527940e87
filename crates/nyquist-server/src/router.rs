//! Checks whether a request is permitted, and dispatches it to an endpoint.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::config::Limits;
use crate::endpoints::{assembly, profile, source, symbolicate, viewer};
use crate::hosts::AllowedHosts;
use crate::one_time::OneTimeLink;
use crate::reply::{ApiError, Reply};
use crate::stored_profile::StoredProfile;
use crate::symbol_source::SymbolSource;
use crate::token::Token;
use crate::unauthenticated_connections::ClientAuthentication;
use crate::viewer::{Client, Viewer};
use crate::{body, cors, links, reply};

/// Everything needed to handle a request; shared by all connections and immutable.
pub(crate) struct Site {
    pub(crate) token: Token,
    pub(crate) hosts: AllowedHosts,
    /// The link for opening a browser, if one was requested.
    pub(crate) one_time: OnceLock<OneTimeLink>,
    /// The origin of the pages that may read responses.
    pub(crate) front_end_origin: Option<HeaderValue>,
    /// The profile, if it is stored.
    pub(crate) profile: Option<Arc<StoredProfile>>,
    pub(crate) symbols: Arc<dyn SymbolSource>,
    /// The viewer that is served beside the profile, if there is one.
    pub(crate) viewer: Option<Arc<dyn Viewer>>,
    /// The address that opens the profile in the front end.
    pub(crate) open_url: String,
    pub(crate) limits: Limits,
    /// One permit for each request whose body is read or whose response is computed.
    pub(crate) lookups: Arc<Semaphore>,
    /// The permit to open another profile in the viewer.
    pub(crate) opening: Semaphore,
}

/// The client of a connection.
pub(crate) struct Sender {
    pub(crate) authentication: ClientAuthentication,
    /// The remote and the local address of the connection.
    pub(crate) between: Option<(SocketAddr, SocketAddr)>,
}

/// Handles any request.
pub(crate) async fn answer(site: &Site, request: Request<Incoming>, sender: &Sender) -> Reply {
    if !site.hosts.allow(&request) {
        return ApiError::new(StatusCode::FORBIDDEN, "forbidden").into();
    }
    let path = request.uri().path().to_owned();
    if let Some(link) = site.one_time.get().filter(|link| link.is_at(&path)) {
        return link.answer(request.method(), sender.between).await;
    }
    let Some(path) = site.token.strip_from(&path) else { return ApiError::not_found().into() };
    sender.authentication.authenticate();
    let mut reply = answer_trusted(site, path, request).await;
    cors::allow_origin(&mut reply, site.front_end_origin.as_ref());
    reply
}

/// Handles a request with the token; `path` is the part after it.
async fn answer_trusted(site: &Site, path: &str, request: Request<Incoming>) -> Reply {
    let Some(endpoint) = Endpoint::at(path, site.viewer.as_ref()) else {
        return ApiError::not_found().into();
    };
    if request.method() == Method::OPTIONS {
        return cors::preflight(request.headers(), endpoint.methods());
    }
    if !endpoint.takes(request.method()) {
        return method_not_allowed(endpoint);
    }
    match endpoint {
        Endpoint::Profile => match (&site.profile, &site.viewer) {
            (Some(profile), viewer) if viewer.as_ref().is_none_or(|viewer| !viewer.shows_another()) => {
                let has_counters = request.uri().query() != Some(links::WITHOUT_COUNTERS);
                stored(site, profile, has_counters).await.unwrap_or_else(Reply::from)
            }
            (_, Some(viewer)) => {
                let query = request.uri().query().unwrap_or_default();
                ask(site, viewer, "profile.json", query).await.unwrap_or_else(Reply::from)
            }
            (_, None) => ApiError::not_found().into(),
        },
        Endpoint::Lookup(lookup) => {
            look_up(site, lookup, request.into_body()).await.map_or_else(Reply::from, reply::json)
        }
        Endpoint::Asset(viewer, path) => {
            viewer::asset(&**viewer, path, &site.open_url, &request).unwrap_or_else(Reply::from)
        }
        Endpoint::Open(viewer) => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            open(site, viewer, query, request.into_body()).await.unwrap_or_else(Reply::from)
        }
        Endpoint::Question(viewer, question) => {
            let query = request.uri().query().unwrap_or_default();
            ask(site, viewer, question, query).await.unwrap_or_else(Reply::from)
        }
    }
}

/// An endpoint that takes and returns JSON. It may take long, so it is called on a separate
/// thread.
type Lookup = fn(&[u8], &dyn SymbolSource, &Limits) -> Result<Vec<u8>, ApiError>;

/// The paths below the token.
#[derive(Clone, Copy)]
enum Endpoint<'a> {
    Profile,
    Lookup(Lookup),
    /// A file of the viewer, by its path.
    Asset(&'a Arc<dyn Viewer>, &'a str),
    /// Opens another profile in the viewer.
    Open(&'a Arc<dyn Viewer>),
    /// A request to the viewer, by its name.
    Question(&'a Arc<dyn Viewer>, &'a str),
}

impl<'a> Endpoint<'a> {
    fn at(path: &'a str, viewer: Option<&'a Arc<dyn Viewer>>) -> Option<Self> {
        match path {
            "profile.json" => Some(Self::Profile),
            "symbolicate/v5" => Some(Self::Lookup(symbolicate::answer)),
            "source/v1" => Some(Self::Lookup(source::answer)),
            "asm/v1" => Some(Self::Lookup(assembly::answer)),
            path => match path.strip_prefix("api/v1/") {
                Some("open") => viewer.map(Self::Open),
                Some(question) => viewer.map(|viewer| Self::Question(viewer, question)),
                None => viewer.map(|viewer| Self::Asset(viewer, path)),
            },
        }
    }

    /// The accepted methods, in the form of `Allow`.
    fn methods(self) -> &'static str {
        match self {
            Self::Profile | Self::Asset(..) | Self::Question(..) => "GET, HEAD, OPTIONS",
            Self::Lookup(_) | Self::Open(_) => "POST, OPTIONS",
        }
    }

    fn takes(self, method: &Method) -> bool {
        self.methods().split(", ").any(|taken| taken == method.as_str())
    }
}

fn method_not_allowed(endpoint: Endpoint<'_>) -> Reply {
    let message = format_args!("this path takes {}", endpoint.methods()).to_string();
    let mut reply = Reply::from(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(endpoint.methods()));
    reply
}

/// Reads the body and computes the response. The permit moves to the worker, so that clients that disconnect
/// and repeat the request cannot accumulate work.
async fn look_up(site: &Site, lookup: Lookup, body: Incoming) -> Result<Vec<u8>, ApiError> {
    let permit = Arc::clone(&site.lookups).acquire_owned().await.map_err(|_| shutting_down())?;
    let request = body::read(body, site.limits.body_bytes, &site.limits).await?;
    let (symbols, limits) = (Arc::clone(&site.symbols), site.limits.clone());
    let worker = spawn_blocking(move || {
        let _permit = permit;
        lookup(&request, &*symbols, &limits)
    });
    worker.await.map_err(|_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))?
}

/// The stored profile, with its counters or without. The permit moves to the worker, as in [`look_up`].
async fn stored(site: &Site, profile: &Arc<StoredProfile>, has_counters: bool) -> Result<Reply, ApiError> {
    let permit = Arc::clone(&site.lookups).acquire_owned().await.map_err(|_| shutting_down())?;
    let profile = Arc::clone(profile);
    let worker = spawn_blocking(move || {
        let _permit = permit;
        let document = if has_counters { profile.read() } else { profile.read_without_counters() };
        document.map(profile::answer)
    });
    worker.await.map_err(|_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))?
}

/// Opens another profile in the viewer. Only one is read at a time, because each may need much memory.
async fn open(
    site: &Site,
    viewer: &Arc<dyn Viewer>,
    query: String,
    body: Incoming,
) -> Result<Reply, ApiError> {
    let turn = site.opening.acquire().await.map_err(|_| shutting_down())?;
    let permit = Arc::clone(&site.lookups).acquire_owned().await.map_err(|_| shutting_down())?;
    let profile = body::read(body, site.limits.profile_bytes, &site.limits).await?;
    let viewer = Arc::clone(viewer);
    let worker = spawn_blocking(move || {
        let _permit = permit;
        viewer::reply(viewer.open(profile, &query))
    });
    let reply = worker.await;
    drop(turn);
    reply.map_err(|_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))?
}

/// Handles a request of the viewer. The permit moves to the worker, as in [`look_up`].
async fn ask(site: &Site, viewer: &Arc<dyn Viewer>, question: &str, query: &str) -> Result<Reply, ApiError> {
    let client = Client::default();
    let _presence = client.presence();
    let permit = Arc::clone(&site.lookups).acquire_owned().await.map_err(|_| shutting_down())?;
    let (viewer, question, query) = (Arc::clone(viewer), question.to_owned(), query.to_owned());
    let worker = spawn_blocking(move || {
        let _permit = permit;
        viewer::answer(&*viewer, &question, &query, &client)
    });
    worker.await.map_err(|_| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))?
}

fn shutting_down() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down")
}
