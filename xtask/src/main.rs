//! The one entry for people and CI: `cargo xtask test | bench | fuzz`.

fn main() {}
