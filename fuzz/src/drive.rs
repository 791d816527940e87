//! One target over its known inputs, and over changes of them until the time is up.
//!
//! The input that is being tried is in a file, so that it is there whatever ends the process: a panic, a signal, too
//! much memory, or the watch over the time that one input may take.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nyquist_fuzz::targets;
use nyquist_test_support::mutation::{Dice, mutate};

/// How long one input may take. Time stays in proportion to the input, which is short.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The length of an input at most.
const MAX_BYTES: usize = 100_000;

/// Runs a target for some seconds, first over what is in the repository, then over what was made, of which it tries no
/// more than `most`.
pub(crate) fn run(name: &str, seconds: &str, seed: &str, most: &str) -> Result<(), String> {
    let target = targets::find(name).ok_or_else(|| format!("there is no fuzz target {name}"))?;
    let (Ok(seconds), Ok(seed), Ok(most)) = (seconds.parse(), seed.parse(), most.parse()) else {
        return Err("seconds, seed and inputs are numbers".to_owned());
    };
    let trial = Trial::of(name).map_err(|error| format!("cannot write the input that is tried: {error}"))?;
    let known = known_inputs(name).map_err(|error| format!("cannot read the inputs of {name}: {error}"))?;
    for input in &known {
        trial.run(target, input)?;
    }
    let bounds = Bounds { time: Duration::from_secs(seconds), most };
    let count = trial.mutate(target, &known, &bounds, seed)?;
    println!("{name}: {} known inputs, {count} made of them", known.len());
    fs::remove_file(&trial.path).map_err(|error| error.to_string())
}

/// The inputs that were found once, and the first ones of fuzzing, in the order of their names.
fn known_inputs(name: &str) -> io::Result<Vec<Vec<u8>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in [root.join("found").join(name), root.join("corpus").join(name)] {
        match fs::read_dir(folder) {
            Ok(entries) => {
                paths.extend(entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    paths.sort();
    paths.iter().map(fs::read).collect()
}

/// How long inputs are made, and how many.
struct Bounds {
    time: Duration,
    most: u64,
}

/// The trying of inputs.
struct Trial {
    path: PathBuf,
    file: File,
    /// When the input that is tried was begun with, in milliseconds since the start; `u64::MAX` between inputs.
    begun: Arc<AtomicU64>,
    start: Instant,
}

impl Trial {
    fn of(name: &str) -> io::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
        fs::create_dir_all(&folder)?;
        let path = folder.join("tried");
        let (file, begun, start) = (File::create(&path)?, Arc::new(AtomicU64::new(u64::MAX)), Instant::now());
        let watched = Arc::clone(&begun);
        std::thread::spawn(move || watch(&watched, start));
        Ok(Self { path, file, begun, start })
    }

    fn run(&self, target: fn(&[u8]), input: &[u8]) -> Result<(), String> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all_at(input, 0));
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.begun.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
        target(input);
        self.begun.store(u64::MAX, Ordering::Relaxed);
        Ok(())
    }

    fn mutate(
        &self,
        target: fn(&[u8]),
        known: &[Vec<u8>],
        bounds: &Bounds,
        seed: u64,
    ) -> Result<u64, String> {
        let (mut dice, began, mut count) = (Dice::new(seed), Instant::now(), 0);
        let made: Vec<Vec<u8>> = (0..16).map(|_| noise(&mut dice)).collect();
        let known = if known.is_empty() { &made } else { known };
        let mut last = Vec::new();
        while count < bounds.most && began.elapsed() < bounds.time {
            // Changes are made to what was changed, too.
            let mut input = if dice.below(4) == 0 { last } else { known[dice.below(known.len())].clone() };
            mutate(&mut input, &known[dice.below(known.len())], MAX_BYTES, &mut dice);
            self.run(target, &input)?;
            last = input;
            count += 1;
        }
        Ok(count)
    }
}

/// Bytes without a meaning, for targets that have no inputs.
fn noise(dice: &mut Dice) -> Vec<u8> {
    let len = 16 << dice.below(9);
    (0..len).map(|_| dice.roll() as u8).collect()
}

/// Ends the process when an input takes too long.
fn watch(begun: &AtomicU64, start: Instant) {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let taken = (start.elapsed().as_millis() as u64).saturating_sub(begun.load(Ordering::Relaxed));
        if u128::from(taken) > MAX_TIME.as_millis() {
            eprintln!("an input takes more than {} s", MAX_TIME.as_secs());
            std::process::abort();
        }
    }
}
