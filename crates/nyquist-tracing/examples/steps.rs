//! Sets markers by hand: ten steps with a number each, and a moment at the end of each step.
//!
//!     nyquist record cargo run --example steps

fn main() {
    for number in 0..10_u64 {
        let step = nyquist_tracing::marker("step").field("number", number);
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(step);
        nyquist_tracing::instant("step is done").field("number", number);
    }
}
