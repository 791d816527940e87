//! `nyquist`, the command: arguments, messages, exit statuses and wiring.

fn main() {}
