// Work measured in CPU time, and the truth about it: the Rust side of work.h.

use std::fs::OpenOptions;
use std::io::Write;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, out: *mut Timespec) -> i32;
}

fn clock_ns(clock: i32) -> u64 {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `now` lives for the call and has the C type's layout.
    unsafe { clock_gettime(clock, &raw mut now) };
    now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64
}

/// The CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(3)
}

/// One turn of spinning, of about 100 microseconds; inlined, so that the time is the caller's own.
#[inline(always)]
pub fn spin_turn() {
    for i in 0..300_000_u32 {
        // SAFETY: the empty statement changes nothing; it only makes the compiler keep `i`.
        unsafe { std::arch::asm!("/* {0:e} */", in(reg) i, options(nomem, nostack, preserves_flags)) };
    }
}

/// The number that the first argument gives.
pub fn milliseconds(usual: u64) -> u64 {
    std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(usual)
}

/// Reports that the work begins, if a test waits for it.
pub fn ready() {
    if let Some(path) = std::env::var_os("WORKLOAD_READY") {
        std::fs::write(path, "").expect("the ready file");
    }
}

/// Appends this process's line of truth, where it was asked for.
pub fn truth_write(program: &str, parts: &[(&str, u64)]) {
    let Some(path) = std::env::var_os("WORKLOAD_TRUTH") else { return };
    let parts: Vec<String> = parts.iter().map(|(name, ns)| format!("\"{name}\":{ns}")).collect();
    let line = format!(
        "{{\"program\":\"{program}\",\"pid\":{},\"cpu_ns\":{},\"user_ns\":{1},\"system_ns\":0,\"parts\":{{{}}}}}\n",
        std::process::id(),
        clock_ns(2),
        parts.join(",")
    );
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("the truth file");
    file.write_all(line.as_bytes()).expect("the truth file");
}
