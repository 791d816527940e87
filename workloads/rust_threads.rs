// Rust threads with names, and a panic that is caught: unwinding through it burns too little to matter.
#[path = "common/work.rs"]
mod work;

#[inline(never)]
fn thread_work(goal: u64) -> u64 {
    let began = work::thread_cpu_ns();
    loop {
        work::spin_turn();
        let used = work::thread_cpu_ns() - began;
        if used >= goal {
            return std::hint::black_box(used);
        }
    }
}

fn main() {
    let goal = work::milliseconds(500) * 1_000_000;
    work::ready();
    std::panic::set_hook(Box::new(|_| {}));
    let named = |name: &str, goal: u64| {
        std::thread::Builder::new().name(name.into()).spawn(move || thread_work(goal)).expect("a thread")
    };
    let (first, second) = (named("rust-first", goal * 6 / 10), named("rust-second", goal * 4 / 10));
    let caught = std::panic::catch_unwind(|| panic!("caught"));
    assert!(caught.is_err());
    let parts = [("rust-first", first.join().expect("joined")), ("rust-second", second.join().expect("joined"))];
    work::truth_write("rust_threads", &parts);
}
