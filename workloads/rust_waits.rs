//! Threads that wait for each kind of thing of Rust's standard library, each named after it: `rust_waits SECONDS`.

use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

static ONCE: Once = Once::new();

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).unwrap()
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let (mutex, lock) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(0)));
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let barrier = Arc::new(Barrier::new(2));
    let (sender, receiver) = channel::<u8>();
    let (full, room) = sync_channel::<u8>(0);
    let (held, written) = (mutex.lock().unwrap(), lock.write().unwrap());
    let mut threads = Vec::new();
    let mut add = |thread| threads.push(thread);
    let requested = Arc::clone(&mutex);
    add(start("mutex", move || *requested.lock().unwrap() += 1));
    let requested = Arc::clone(&lock);
    add(start("rwlock", move || assert_eq!(*requested.read().unwrap(), 0)));
    let theirs = Arc::clone(&pair);
    add(start("condvar", move || {
        let mut is_over = theirs.0.lock().unwrap();
        while !*is_over {
            is_over = theirs.1.wait(is_over).unwrap();
        }
    }));
    add(start("receives", move || assert!(receiver.recv().is_err())));
    add(start("sends", move || assert!(full.send(1).is_ok())));
    let parked = start("parks", thread::park);
    let theirs = Arc::clone(&barrier);
    add(start("barrier", move || drop(theirs.wait())));
    let (begins, has_begun) = channel();
    add(start("first", move || {
        ONCE.call_once(|| {
            begins.send(()).unwrap();
            thread::sleep(time);
        });
    }));
    // The thread that initializes comes first.
    has_begun.recv().unwrap();
    add(start("once", || ONCE.call_once(|| ())));
    add(start("joins", move || start("sleeps", move || thread::sleep(time)).join().unwrap()));
    thread::sleep(time);
    drop((held, written));
    *pair.0.lock().unwrap() = true;
    pair.1.notify_all();
    drop(sender);
    assert_eq!(room.recv(), Ok(1));
    parked.thread().unpark();
    parked.join().unwrap();
    barrier.wait();
    for thread in threads {
        thread.join().unwrap();
    }
}
