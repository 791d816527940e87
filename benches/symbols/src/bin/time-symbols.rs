//! Times this project's symbolizer beside others: each run is a process of its own on the same addresses of the
//! same program; medians of several runs. `nyquist-again` has answered the same addresses before, into its cache.
//!
//! `time-symbols [PROGRAM]`: `generate-program` makes the program that is taken otherwise.

use bench_symbols::sys::{self, Usage};
use nyquist_object::{Elf, FileSource, RelativeAddress, Svma};
use nyquist_symbols::{AnswerCache, Finder, ModuleRequest, SearchPaths};
use std::fs::File;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const RUNS: usize = 7;
const COUNTS: [usize; 3] = [1, 1000, 20_000];
const ENGINES: [&str; 7] =
    ["nyquist", "nyquist-2-threads", "nyquist-again", "addr2line", "wholesym", "blazesym", "llvm"];

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [engine, program, addresses] => run_engine(engine, Path::new(program), Path::new(addresses)),
        [program] => table(Path::new(program)),
        _ => table(&Path::new(env!("CARGO_MANIFEST_DIR")).join("target/large/large")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn table(program: &Path) -> Result<(), Failure> {
    println!("| n | engine | CPU ms | wall ms | peak MB |\n|---|---|---|---|---|");
    for count in COUNTS {
        let list = address_list(program, count)?;
        AnswerCache::new(cache_folder(program)).clear()?;
        one_run("nyquist-again", program, &list)?;
        let mut runs: Vec<Vec<(Usage, Duration)>> = vec![Vec::new(); ENGINES.len()];
        // The engines take turns, so that a busy moment of the machine is shared by all.
        for _ in 0..RUNS {
            for (engine, runs) in ENGINES.iter().zip(&mut runs) {
                runs.push(one_run(engine, program, &list)?);
            }
        }
        for (engine, runs) in ENGINES.iter().zip(&runs) {
            let cpu = median(runs.iter().map(|(usage, _)| usage.cpu.as_micros() as u64));
            let wall = median(runs.iter().map(|(_, wall)| wall.as_micros() as u64));
            let peak = median(runs.iter().map(|(usage, _)| usage.peak));
            let ms = |micros: u64| micros as f64 / 1000.0;
            println!("| {count} | {engine} | {:.1} | {:.1} | {} |", ms(cpu), ms(wall), peak / 1_000_000);
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn one_run(engine: &str, program: &Path, list: &Path) -> Result<(Usage, Duration), Failure> {
    let mut command = if engine == "llvm" {
        let mut command = Command::new("llvm-symbolizer");
        command.arg("--inlines").arg("--obj").arg(program).stdin(File::open(list)?);
        command
    } else {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(engine).arg(program).arg(list);
        command
    };
    let start = Instant::now();
    let child = command.stdout(Stdio::null()).spawn()?;
    let usage = sys::wait(&child)?;
    Ok((usage, start.elapsed()))
}

/// Writes addresses all over the program's code to a file; the same ones every time.
fn address_list(program: &Path, count: usize) -> Result<PathBuf, Failure> {
    let elf = Elf::open(FileSource::new(File::open(program)?))?;
    let text = elf.section(".text").ok_or("no .text")?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let lines = (0..count).map(|_| format!("{:#x}\n", text.address.0 + random() % text.size));
    let path = program.with_extension(format!("{count}.addresses"));
    std::fs::write(&path, lines.collect::<String>())?;
    Ok(path)
}

fn read_list(list: &Path) -> Result<Vec<u64>, Failure> {
    let text = std::fs::read_to_string(list)?;
    text.lines().map(|line| Ok(u64::from_str_radix(line.trim_start_matches("0x"), 16)?)).collect()
}

fn run_engine(engine: &str, program: &Path, list: &Path) -> Result<(), Failure> {
    let addresses = read_list(list)?;
    match engine {
        "nyquist" => nyquist(program, &addresses, 1, None),
        "nyquist-2-threads" => nyquist(program, &addresses, 2, None),
        "nyquist-again" => nyquist(program, &addresses, 1, Some(AnswerCache::new(cache_folder(program)))),
        "addr2line" => addr2line(program, &addresses),
        "wholesym" => wholesym(program, &addresses),
        "blazesym" => blazesym(program, &addresses),
        other => Err(format!("no engine {other}").into()),
    }
}

fn cache_folder(program: &Path) -> PathBuf {
    program.with_extension("answers")
}

fn nyquist(
    program: &Path,
    addresses: &[u64],
    threads: usize,
    cache: Option<AnswerCache>,
) -> Result<(), Failure> {
    let request = ModuleRequest { path: program.to_owned(), ..ModuleRequest::default() };
    let mut finder = Finder::new(SearchPaths::default());
    if let Some(cache) = cache {
        finder = finder.with_cache(Arc::new(cache));
    }
    let symbols = finder.open(&finder.find(&request))?;
    let base = Elf::open(FileSource::new(File::open(program)?))?.image_base();
    let relative = |&address: &u64| RelativeAddress::from_svma(Svma(address), base);
    let addresses: Vec<_> = addresses.iter().filter_map(relative).collect();
    if let [address] = addresses.as_slice() {
        black_box(symbols.lookup(*address));
    } else {
        let threads = NonZeroUsize::new(threads).ok_or("no threads")?;
        black_box(symbols.symbolicate(&addresses, threads, &AtomicBool::new(false)));
    }
    Ok(())
}

fn addr2line(program: &Path, addresses: &[u64]) -> Result<(), Failure> {
    let loader = addr2line::Loader::new(program).map_err(|error| error.to_string())?;
    for &address in addresses {
        let mut frames = loader.find_frames(address)?;
        while let Some(frame) = frames.next()? {
            let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
            black_box((name.map(std::borrow::Cow::into_owned), frame.location));
        }
        black_box(loader.find_symbol(address));
    }
    Ok(())
}

fn wholesym(program: &Path, addresses: &[u64]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let config = wholesym::SymbolManagerConfig::default();
        let manager = wholesym::SymbolManager::with_config(config);
        let map = manager.load_symbol_map_for_binary_at_path(program, None).await?;
        for &address in addresses {
            black_box(map.lookup(wholesym::LookupAddress::Svma(address)).await);
        }
        Ok(())
    })
}

fn blazesym(program: &Path, addresses: &[u64]) -> Result<(), Failure> {
    use blazesym::symbolize::source::{Elf, Source};
    use blazesym::symbolize::{Input, Symbolizer};
    let source = Source::Elf(Elf::new(program));
    black_box(Symbolizer::new().symbolize(&source, Input::VirtOffset(addresses))?);
    Ok(())
}
