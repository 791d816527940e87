//! A Tokio server that renders pages from three tables of a database, and its clients, in one process.
//!
//! `async_server STEP CONNECTIONS REQUESTS`: each connection asks for so many pages, one after another. The steps are
//! those of docs/async.md: `slow`, `unlocked`, `rendered`, `joined`; each has the changes of those before it. At the
//! end it prints how long a page took. With `crash` as a fourth word it aborts in the middle of it all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tracing::{Instrument as _, info, info_span, instrument};
use tracing_subscriber::prelude::*;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Step {
    Slow,
    /// The lock of the visits is held only while they are counted.
    Unlocked,
    /// A page is put together in one go.
    Rendered,
    /// The tables are asked at the same time.
    Joined,
}

struct Server {
    step: Step,
    visits: Mutex<HashMap<u32, u32>>,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    tracing_subscriber::registry().with(nyquist_tracing::layer()).init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [step, connections, requests, ..] = &words[..] else {
        return Err("STEP CONNECTIONS REQUESTS".into());
    };
    let step = match step.as_str() {
        "slow" => Step::Slow,
        "unlocked" => Step::Unlocked,
        "rendered" => Step::Rendered,
        "joined" => Step::Joined,
        other => return Err(format!("there is no step {other}").into()),
    };
    let (connections, requests) = (connections.parse::<u32>()?, requests.parse::<u32>()?);

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(accept(listener, Arc::new(Server { step, visits: Mutex::default() })));
    let start = Instant::now();
    let clients = (0..connections).map(|user| tokio::spawn(client(address, user, requests)));
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.extend(client.await??);
    }
    if words.get(3).is_some_and(|word| word == "crash") {
        std::process::abort();
    }
    report(start.elapsed(), times);
    Ok(())
}

fn report(elapsed: Duration, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let rate = times.len() as f64 / elapsed.as_secs_f64();
    println!(
        "{} pages, {rate:.0} a second; half took {:.1} ms, 1 of 100 {:.1} ms or more",
        times.len(),
        at(50),
        at(99)
    );
}

async fn client(address: std::net::SocketAddr, user: u32, requests: u32) -> Result<Vec<Duration>, Error> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let (mut line, mut times) = (String::new(), Vec::new());
    for _ in 0..requests {
        let start = Instant::now();
        stream.write_all(format!("{user}\n").as_bytes()).await?;
        line.clear();
        stream.read_line(&mut line).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}

async fn accept(listener: TcpListener, server: Arc<Server>) {
    while let Ok((stream, _)) = listener.accept().await {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            // A client that goes away ends its connection, which is no error.
            let _ = serve(stream, &server).await;
        });
    }
}

async fn serve(stream: TcpStream, server: &Server) -> Result<(), Error> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let user = line.trim().parse()?;
        let page = server.page(user).await;
        stream.write_all(format!("{page}\n").as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

impl Server {
    #[instrument(skip(self))]
    async fn page(&self, user: u32) -> String {
        let held = self.count_visit(user).await;
        let [profile, orders, offers] = if self.step >= Step::Joined {
            let (profile, orders, offers) =
                tokio::join!(query("profile", user), query("orders", user), query("offers", user));
            [profile, orders, offers]
        } else {
            [query("profile", user).await, query("orders", user).await, query("offers", user).await]
        };
        drop(held);
        let page = if self.step >= Step::Rendered {
            render(&[profile, orders, offers])
        } else {
            render_by_lines(&[profile, orders, offers])
        };
        info!(bytes = page.len(), "page is ready");
        page
    }

    /// Counts the user's visit; gives back the lock where the step holds it for the whole page.
    async fn count_visit(&self, user: u32) -> Option<tokio::sync::MutexGuard<'_, HashMap<u32, u32>>> {
        let mut visits = self.visits.lock().instrument(info_span!("lock visits")).await;
        *visits.entry(user).or_default() += 1;
        (self.step < Step::Unlocked).then_some(visits)
    }
}

/// A table of the database, which takes its time to answer.
#[instrument]
async fn query(table: &'static str, user: u32) -> Vec<u32> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    (0..400).map(|row| row * user + table.len() as u32).collect()
}

/// Puts a page together line by line: the page so far is copied for each.
#[instrument(skip_all)]
fn render_by_lines(tables: &[Vec<u32>]) -> String {
    let mut page = String::new();
    for number in tables.iter().flatten() {
        page = format!("{page}{}", row(*number));
    }
    page
}

/// Puts a page together in one go.
#[instrument(skip_all)]
fn render(tables: &[Vec<u32>]) -> String {
    tables.iter().flatten().map(|number| row(*number)).collect()
}

fn row(number: u32) -> String {
    format!("<tr><td>{number}</td><td>{}</td></tr>", number.wrapping_mul(2_654_435_761))
}
