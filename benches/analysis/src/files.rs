//! Saving the profile and loading it again, each load in a process of its own: the peak of its memory is the load's.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};

use crate::{cpu_time, milliseconds, status_mb, timed};

/// The argument that makes this program load the file that follows.
pub(crate) const LOAD: &str = "--load";

/// Saves the profile to a folder, uncompressed and with gzip, and loads both.
///
/// The compressed one stays there if `keeps` is set.
pub(crate) fn save_and_load(profile: &Profile, folder: &Path, keeps: bool) {
    println!("| file | MB | saved in ms | MB/s | loaded in ms | CPU ms | peak MB |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (name, gzip) in [("large-profile.json", false), ("large-profile.json.gz", true)] {
        let path = folder.join(name);
        let options = WriteOptions { gzip, ..WriteOptions::default() };
        let file = File::create(&path).expect("the folder can be written to");
        let (saved, took) = timed(|| firefox::write(profile, options, file));
        saved.expect("the profile can be saved");
        let size = fs::metadata(&path).expect("it was saved").len() as f64 / 1e6;
        let speed = size / took.as_secs_f64();
        println!(
            "| {name} | {size:.0} | {} | {speed:.0} | {} |",
            milliseconds(took),
            load_in_own_process(&path)
        );
        if !(gzip && keeps) {
            fs::remove_file(&path).expect("it was saved");
        }
    }
    println!();
}

/// What [`load`] prints in a process of its own.
fn load_in_own_process(path: &Path) -> String {
    let program = std::env::current_exe().expect("this program is a file");
    let output = Command::new(program).arg(LOAD).arg(path).output().expect("this program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Loads a profile and prints the time, the CPU time and the peak of memory.
pub(crate) fn load(path: &Path) {
    let file = File::open(path).expect("the profile is there");
    let (profile, took) = timed(|| firefox::read(file).expect("the profile can be loaded"));
    println!("{} | {} | {}", milliseconds(took), milliseconds(cpu_time()), status_mb("VmHWM:"));
    drop(profile);
}
