//! What reading, converting and writing a recording take, each apart: `stages FILE [OUTPUT]`.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};
use nyquist_convert::perf_data::{ImportOptions, import};
use nyquist_perf::file::FileReader;
use nyquist_perf_data_bench::{Took, timed};
use nyquist_profile::firefox::{WriteOptions, write};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(arguments.first().context("usage: stages FILE [OUTPUT]")?);
    let say = |stage: &str, took: Took| {
        println!("{stage}: {:.3} s, {:.3} s of CPU time", took.wall.as_secs_f64(), took.cpu.as_secs_f64());
    };
    let (records, took) = timed(|| read(path));
    say("records read", took);
    println!("  {} records", records?);
    let (imported, took) =
        timed(|| import(FileReader::open(path)?, ImportOptions::default()).context("import"));
    say("converted", took);
    let profile = imported?.finished.profile;
    println!("  {} stacks, {} frames", profile.stacks().len(), profile.frames().len());
    let output = arguments.get(1).map_or("/dev/null", String::as_str);
    for gzip in [false, true] {
        let options = WriteOptions { gzip, ..WriteOptions::default() };
        let (written, took) = timed(|| write(&profile, options, File::create(output)?));
        written?;
        say(if gzip { "written with gzip" } else { "written" }, took);
    }
    let ((), took) = timed(|| drop(profile));
    say("freed", took);
    Ok(())
}

fn read(path: &Path) -> Result<u64> {
    let mut reader = FileReader::open(path)?;
    let mut records = 0;
    while reader.read_next().is_some() {
        records += 1;
    }
    Ok(records)
}
