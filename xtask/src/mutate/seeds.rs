//! The files that are damaged: recordings and profiles that the program makes itself, the files that they
//! name, and object files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::seed::Seed;
use super::trial::Trial;
use crate::workloads;

/// The formats in which profiles are written and read, with the endings of their file names.
const FORMATS: [(&str, &str); 10] = [
    ("pprof", "pb.gz"),
    ("otlp", "otlp"),
    ("perfetto", "pftrace"),
    ("folded", "folded"),
    ("speedscope", "speedscope.json"),
    ("chrome", "trace.json"),
    ("perf-script", "perf"),
    ("callgrind", "callgrind"),
    ("parquet", "parquet"),
    ("firefox", "json.gz"),
];

/// Samples of other programs' profiles in the repository.
const SAMPLES: [&str; 5] = [
    "crates/nyquist-formats/tests/samples/node-20.cpuprofile",
    "crates/nyquist-formats/tests/samples/perf-6.1.txt",
    "crates/nyquist-formats/tests/samples/py-spy-0.4.speedscope.json",
    "crates/nyquist-profile/tests/firefox/data/samply-0.13.1.json.gz",
    "crates/nyquist-formats/tests/samples/README.md",
];

/// Object files from the seeds of the fuzz targets, if those exist: the target, and the number of files.
const OBJECTS: [(&str, usize); 4] = [("elf", 12), ("windows_symbols", 5), ("macho", 2), ("symbols_file", 4)];

/// Makes all of them. If the machine does not allow recording, there are fewer.
pub(super) fn all(trial: &Trial) -> Result<Vec<Seed>> {
    let workloads = workloads::build_all()?;
    let mut seeds = Vec::new();
    let program = trial.scratch.join("program");
    fs::copy(workloads.join("shares"), &program)?;
    record(trial, &[&program.display().to_string(), "60"], "good")?;
    let (profile, recording) = (trial.scratch.join("good.json"), trial.scratch.join("good.data"));
    for (format, end) in FORMATS {
        let file = trial.scratch.join(format!("exported.{end}"));
        call(trial, &words(&["export", "-f", format, "-o"], &[&file, &profile]))?;
        seeds.push(profile_seed(trial, file)?);
    }
    for sample in SAMPLES {
        let name = Path::new(sample).file_name().context("a sample has a name")?;
        let place = trial.scratch.join(name);
        fs::copy(crate::paths::root().join(sample), &place)?;
        seeds.push(profile_seed(trial, place)?);
    }
    seeds.push(profile_seed(trial, profile.clone())?);
    seeds.push(profile_seed(trial, recording.clone())?);
    // The program, which the recording names. It is read for names, lines, unwinding and instructions.
    let mut names = import(trial, &recording);
    names.push(words(&["annotate", "alpha"], &[&profile]));
    names.push(words(&["doctor"], &[&program]));
    seeds.push(seed(program, names)?);
    seeds.extend(made_code(trial, &workloads)?);
    seeds.extend(objects(trial)?);
    Ok(seeds)
}

/// Records a command, and keeps the recording beside the profile.
fn record(trial: &Trial, command: &[&str], name: &str) -> Result<()> {
    let (profile, recording) = (format!("{name}.json"), format!("{name}.data"));
    let options = ["record", "-s", "-q", "-o", &profile, "--perf-data", &recording, "--"];
    call(trial, &options.iter().chain(command).map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn call(trial: &Trial, words: &[String]) -> Result<()> {
    let output = trial.command(words).stdout(Stdio::null()).output().context("cannot start nyquist")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nyquist {} does not work here: {printed}", words.join(" "));
    Ok(())
}

/// The words of a command, followed by the paths of files.
fn words(words: &[&str], files: &[&Path]) -> Vec<String> {
    let files = files.iter().map(|file| file.display().to_string());
    words.iter().map(|word| (*word).to_owned()).chain(files).collect()
}

fn seed(place: PathBuf, commands: Vec<Vec<String>>) -> Result<Seed> {
    let bytes = fs::read(&place).with_context(|| format!("cannot read {}", place.display()))?;
    Ok(Seed { place, bytes, commands })
}

/// A profile in any format.
fn profile_seed(trial: &Trial, place: PathBuf) -> Result<Seed> {
    let good = trial.scratch.join("good.json.copy");
    if !good.exists() {
        fs::copy(trial.scratch.join("good.json"), &good)?;
    }
    let mut commands = import(trial, &place);
    for words_before in [
        &["report"][..],
        &["report", "--json"],
        &["query"],
        &["script"],
        &["doctor"],
        &["annotate", "alpha"],
        &["flamegraph", "-o", "picture.svg"],
        &["export", "-f", "folded", "-o", "out.folded"],
        &["export", "-f", "pprof", "-o", "out.pb.gz"],
        &["export", "-f", "perf.data", "-o", "out.data"],
    ] {
        commands.push(words(words_before, &[&place]));
    }
    commands.push(words(&["diff"], &[&good, &place]));
    seed(place, commands)
}

fn import(trial: &Trial, file: &Path) -> Vec<Vec<String>> {
    vec![words(&["import", "-s", "-o"], &[&trial.scratch.join("imported.json"), file])]
}

/// A jitdump and a perf map, which recordings refer to.
fn made_code(trial: &Trial, workloads: &Path) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (program, end, folder) in
        [("dumped_code", "dump", trial.scratch.as_path()), ("made_code", "map", Path::new("/tmp"))]
    {
        let before = files(folder, end)?;
        record(trial, &[&workloads.join(program).display().to_string(), "60"], program)?;
        let recording = trial.scratch.join(format!("{program}.data"));
        for place in files(folder, end)?.into_iter().filter(|place| !before.contains(place)) {
            seeds.push(seed(place, import(trial, &recording))?);
        }
    }
    Ok(seeds)
}

/// The files of a folder with this extension.
fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let all = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().filter(|path| path.extension().is_some_and(|found| found == end)).collect())
}

/// Object files of all systems, copied from the seeds of the fuzz targets.
fn objects(trial: &Trial) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (target, count) in OBJECTS {
        for number in 0..count {
            let from = crate::paths::root().join("fuzz/corpus").join(target).join(format!("seed-{number}"));
            if !from.exists() {
                continue;
            }
            let place = trial.scratch.join(format!("{target}-{number}"));
            fs::copy(from, &place)?;
            let commands = vec![words(&["doctor"], &[&place]), words(&["report"], &[&place])];
            seeds.push(seed(place, commands)?);
        }
    }
    Ok(seeds)
}
