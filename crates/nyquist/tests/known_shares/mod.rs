//! A program whose shares of time are known.

use std::hint::black_box;
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

/// Turns of the loop in one unit of work: some milliseconds.
const TURNS: u64 = 400_000;

/// The rounds of work: some seconds of CPU time.
const ROUNDS: u64 = 250;

/// The status that the program ends with if it is asked to.
pub(super) const STATUS: i32 = 7;

/// Works, and ends this process.
pub(super) fn run(argv: &str) {
    match argv {
        "shares" => works(ROUNDS),
        "endless" => works_endlessly(),
        "parent" => exit(i32::from(!starts_another())),
        "waiting" => works_beside_waiting_threads(),
        "status" => exit(STATUS),
        other => panic!("unknown: {other}"),
    }
    exit(0);
}

fn works_endlessly() {
    works(ROUNDS);
    if let Some(path) = std::env::var_os(super::WORKED) {
        std::fs::write(path, "").unwrap();
    }
    works(u64::MAX);
}

/// Three of four units of work are in one function, and one is in the other.
fn works(rounds: u64) {
    for _ in 0..rounds {
        black_box(three_quarters(black_box(3)));
        black_box(one_quarter(black_box(1)));
    }
}

#[inline(never)]
fn three_quarters(units: u64) -> u64 {
    black_box(work(black_box(units))).wrapping_add(3)
}

#[inline(never)]
fn one_quarter(units: u64) -> u64 {
    black_box(work(black_box(units))).wrapping_add(1)
}

/// The loop of both. Two copies of it may differ in speed by a half, because of where they lie in memory.
#[inline(never)]
fn work(units: u64) -> u64 {
    let mut sum = 0_u64;
    for turn in 0..units * TURNS {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(turn));
    }
    sum
}

/// The work is done by a child process.
fn starts_another() -> bool {
    let program = super::program();
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).env(super::PROGRAM, "shares").status().is_ok_and(|status| status.success())
}

/// Many threads wait while one works: they must take nothing from its share.
fn works_beside_waiting_threads() {
    for _ in 0..40 {
        thread::spawn(waits);
    }
    works(ROUNDS);
}

#[inline(never)]
fn waits() {
    loop {
        thread::sleep(Duration::from_millis(20));
    }
}
