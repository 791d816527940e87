//! What DHAT counts, and its files, which nyquist writes, too.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::counted::Counted;
use super::names::site_of;
use super::tool::succeeded;
use crate::bench::alloc::bench::Bench;
use crate::bench::alloc::programs::Program;

pub(super) fn count(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let file = bench.folder.join("dhat.out");
    let mut option = OsString::from("--dhat-out-file=");
    option.push(&file);
    let mut command = program.under("valgrind");
    // What the C library frees for valgrind alone, at the end, is live at the end.
    command.args(["--tool=dhat", "--num-callers=40", "--run-libc-freeres=no", "--run-cxx-freeres=no"]);
    succeeded(command.arg(option).args(&program.args), "valgrind")?;
    of_file(&file)
}

/// Whether it can be run.
pub(super) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// The sums of a file.
pub(super) fn of_file(file: &Path) -> Result<Counted> {
    let json: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let frames: Vec<&str> = json["ftbl"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut counted = Counted::default();
    for point in json["pps"].as_array().into_iter().flatten() {
        let indices = point["fs"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let stack = indices.filter_map(|index| frames.get(index as usize)).map(|frame| function_of(frame));
        counted.add(&site_of(stack), ["tb", "tbk", "gb", "eb"].map(|key| point[key].as_f64()));
    }
    Ok(counted)
}

/// The function of a frame such as `0x109166: keeps (t.c:2)`.
fn function_of(frame: &str) -> &str {
    let name = frame.split_once(": ").map_or(frame, |(_, rest)| rest);
    name.rsplit_once(" (").map_or(name, |(name, _)| name)
}
