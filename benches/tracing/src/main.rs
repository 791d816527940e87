//! What a span costs: `nyquist-tracing-bench none|registry|nyquist|chrome|tracy` prints nanoseconds a span.
//!
//! With `NYQUIST_MARKER_DIR` and `NYQUIST_TRACING_BENCH_ALONE` set, `nyquist` is the cost of the layer alone: this
//! program empties its marker files itself. Under `nyquist record` the samples cost something as well.
//!
//! A span is made, entered, left and closed. It has no fields, and one with two fields is measured beside it. Spans
//! come in bursts with pauses in which whoever listens takes them, so that what is measured is writing and not
//! dropping.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use nyquist_tracing::protocol;
use tracing::info_span;
use tracing_subscriber::prelude::*;

/// Spans of a burst: what they write fits into every buffer.
const BURST: u32 = 4000;

/// Bursts that are measured.
const BURSTS: usize = 60;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().map_or("", String::as_str);
    let mut flush = None;
    match mode {
        "none" => {}
        "registry" => tracing_subscriber::registry().init(),
        "nyquist" => tracing_subscriber::registry().with(nyquist_tracing::layer()).init(),
        "chrome" => {
            let file = std::env::temp_dir().join("nyquist-tracing-bench.json");
            let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().file(file).build();
            flush = Some(guard);
            tracing_subscriber::registry().with(layer).init();
        }
        "tracy" => {
            // Only now: its threads would disturb the others.
            tracing_tracy::client::Client::start();
            tracing_subscriber::registry().with(tracing_tracy::TracyLayer::default()).init();
        }
        _ => return Err("which layer? none, registry, nyquist, chrome or tracy".into()),
    }
    let plain = measure(|number| {
        let _span = black_box(info_span!("work").entered());
        black_box(number);
    });
    let fields = measure(|number| {
        let _span = black_box(info_span!("work", number, kind = "even").entered());
    });
    println!("{mode} {plain:.1} {fields:.1}");
    drop(flush);
    Ok(())
}

/// The median burst's time for a span, in nanoseconds.
fn measure(span: impl Fn(u32)) -> f64 {
    let burst = || {
        let start = Instant::now();
        (0..BURST).for_each(&span);
        let took = start.elapsed();
        empty_marker_files();
        std::thread::sleep(Duration::from_millis(60));
        took.as_secs_f64() * 1e9 / f64::from(BURST)
    };
    burst();
    let mut times: Vec<f64> = (0..BURSTS).map(|_| burst()).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Does what a recorder does, if there is none: says that everything was read.
fn empty_marker_files() {
    if std::env::var_os("NYQUIST_TRACING_BENCH_ALONE").is_none() {
        return;
    }
    let folder = std::env::var_os(protocol::DIR_VARIABLE).unwrap_or_default();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(file) = File::options().read(true).write(true).open(entry.path()) else { continue };
        let mut written = [0; 8];
        let read = file.read_exact_at(&mut written, protocol::header::WRITTEN as u64);
        let replied = read.and_then(|()| file.write_all_at(&written, protocol::header::READ as u64));
        replied.expect("a marker file can be read and written");
    }
}
