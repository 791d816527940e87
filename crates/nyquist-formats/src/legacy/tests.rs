//! Tests with generated profiles in the formats of gperftools and Go.

use nyquist_profile::{Measure, Profile, Unit};

use super::{is_cpu, read_cpu, read_text};
use crate::error::Note;
use crate::test_profile::stacks_of;

const MAPS: &str = "build=/opt\n\
    55c70b5a6000-55c70b5a7000 r--p 00000000 00:00 1234       $build/my app\n\
    55c70b5a7000-55c70b5a8000 r-xp 00001000 00:00 1234       $build/my app\n\
    7febe1645000-7febe1700000 r-xp 00028000 fd:01 99   /usr/lib/libc.so.6\n\
    7febe1b14000-7febe1b16000 r-xp 00000000 00:00 0\n";

/// The words of a CPU profile at 10 ms: one stack twice, another one three times.
fn cpu_words() -> Vec<u64> {
    let stack = [2, 3, 0x55c7_0b5a_7123, 0x55c7_0b5a_7211, 0x7feb_e164_524b];
    let alone = [3, 1, 0x1234];
    [[0, 3, 0, 10_000, 0].as_slice(), &stack, &alone, &[0, 1, 0]].concat()
}

fn cpu_file(size: usize, is_big_endian: bool) -> Vec<u8> {
    let word = |word: u64| {
        let bytes = word.to_le_bytes()[..size].to_vec();
        if is_big_endian { bytes.into_iter().rev().collect() } else { bytes }
    };
    let mut file: Vec<u8> = cpu_words().into_iter().flat_map(word).collect();
    file.extend(MAPS.as_bytes());
    file
}

#[test]
fn cpu_profiles_count_periods_of_cpu_time() {
    for is_big_endian in [false, true] {
        let file = cpu_file(8, is_big_endian);
        assert!(is_cpu(&file));
        let imported = read_cpu(&file).unwrap();
        let profile = &imported.profile;
        assert_eq!(imported.notes, []);
        assert!(profile.meta().measure.is_cpu_time() && !profile.meta().symbolicated);
        assert_eq!(profile.meta().interval, 10_000_000);
        // The innermost address is that of an instruction, and the others are after calls.
        assert_eq!(stacks_of(profile), ["0x1234 3", "0x2824a;0x1210;0x1123 2"]);
        let libs: Vec<_> = profile.libs().iter().map(|lib| (&*lib.path, &*lib.name)).collect();
        assert_eq!(libs, [("/usr/lib/libc.so.6", "libc.so.6"), ("/opt/my app", "my app")]);
        let addresses: Vec<_> = profile.frames().iter().map(|frame| frame.address).collect();
        assert_eq!(addresses, [Some(0x2824a), Some(0x1210), Some(0x1123), None]);
    }
}

#[test]
fn cpu_profiles_of_32_bits_are_read() {
    for is_big_endian in [false, true] {
        let profile = read_cpu(&cpu_file(4, is_big_endian)).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["0x1234 3", "0xe164524a;0xb5a7210;0xb5a7123 2"]);
    }
}

#[test]
fn a_cut_cpu_profile_keeps_what_comes_before() {
    let file = cpu_file(8, false);
    let cut = read_cpu(&file[..8 * 12]).unwrap();
    assert_eq!(stacks_of(&cut.profile), ["0x7febe164524a;0x55c70b5a7210;0x55c70b5a7123 2"]);
    assert!(matches!(cut.notes[..], [Note::Cut { .. }]), "{:?}", cut.notes);
    for place in 0..file.len() {
        for byte in [0, 1, 0xff] {
            let mut damaged = file.clone();
            damaged[place] = byte;
            let _ = (read_cpu(&damaged), read_cpu(&file[..place]));
        }
    }
}

/// A heap profile of Go: one in 1,024 bytes is sampled.
const GO_HEAP: &str = "heap profile: 2: 4096 [3: 5120] @ heap/2048\n\
    1: 2048 [2: 3072] @ 0x43f9e8 0x43fc9e 0x461481\n\
    #\t0x43f9e7\tmain.alloc+0x27\t/src/g.go:4\n\
    #\t0x43fc9d\tmain.main+0x7d\t/src/g.go:9\n\
    \n\
    1: 2048 [1: 2048] @ 0x43f9e8 0x461481\n\
    #\t0x43f9e7\tmain.(*T).alloc+0x27\t/src/g.go:4\n\
    \n\
    # runtime.MemStats\n\
    # Alloc = 2926248\n";

fn text(text: &str, value: Option<&str>) -> Profile {
    let imported = read_text(text.as_bytes(), value).unwrap();
    assert_eq!(imported.notes, []);
    imported.profile
}

/// The amounts of all samples by their stacks.
fn amounts(profile: &Profile) -> Vec<String> {
    let interval = profile.meta().interval;
    let scaled = |line: String| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        format!("{stack} {}", weight.parse::<u64>().unwrap() * interval)
    };
    stacks_of(profile).into_iter().map(scaled).collect()
}

#[test]
fn heap_profiles_of_go_have_names_and_are_scaled() {
    let space = text(GO_HEAP, None);
    assert_eq!(space.meta().measure, Measure { name: "inuse_space".into(), unit: Unit::Bytes });
    // 2048 / (1 - e^-2), as `go tool pprof` has it.
    assert_eq!(amounts(&space), ["main.(*T).alloc 2368", "main.main;main.alloc 2368"]);
    let frame = space.frames().iter().find(|it| space.func_name(it.func) == "main.main").unwrap();
    let file = space.source(space.frame_source(frame).unwrap()).filename;
    assert_eq!((space.string(file), frame.line), ("/src/g.go", Some(9)));
    assert!(space.meta().symbolicated);
    let objects = text(GO_HEAP, Some("alloc_objects"));
    assert_eq!(objects.meta().measure, Measure { name: "alloc_objects".into(), unit: Unit::Count });
    assert_eq!(amounts(&objects), ["main.(*T).alloc 1", "main.main;main.alloc 2"]);
    let error = read_text(GO_HEAP.as_bytes(), Some("cpu")).unwrap_err().to_string();
    assert!(error.contains("inuse_objects, inuse_space, alloc_objects, alloc_space"), "{error}");
}

#[test]
fn heap_profiles_of_gperftools_have_libs() {
    let file = format!(
        "heap profile:     10:  1000000 [    12:  1200000] @ heapprofile\n    \
         10:  1000000 [    12:  1200000] @ 0x55c70b5a7124 0x7febe164524b\n\n\
         MAPPED_LIBRARIES:\n{MAPS}"
    );
    let profile = text(&file, None);
    assert_eq!(amounts(&profile), ["0x2824a;0x1123 1000000"]);
    assert_eq!((profile.libs().len(), profile.meta().symbolicated), (2, false));
    assert_eq!(amounts(&text(&file, Some("alloc_space"))), ["0x2824a;0x1123 1200000"]);
}

#[test]
fn contention_is_time_and_how_often() {
    let file = "--- mutex:\ncycles/second=2000000000\nsampling period=5\n\
        4000 3 @ 0x4b477e 0x461481\n\
        #\t0x4b477d\tsync.(*Mutex).Unlock+0x9d\t/go/mutex.go:223\n";
    let delay = text(file, None);
    assert_eq!(delay.meta().measure, Measure { name: "delay".into(), unit: Unit::Time });
    assert_eq!(amounts(&delay), ["sync.(*Mutex).Unlock 10000"]);
    assert_eq!(amounts(&text(file, Some("contentions"))), ["sync.(*Mutex).Unlock 15"]);
}

#[test]
fn goroutines_and_threads_are_counted() {
    let file = "goroutine profile: total 4\n\
        3 @ 0x4378b6 0x461481\n# labels: {\"a\":\"b\"}\n#\t0x4b46be\tmain.wait+0x1e\t/src/g.go:12\n\n\
        1 @ 0x42d4f6\n#\t0x45cb04\tmain.main+0x24\t/src/g.go:1\n";
    let goroutines = text(file, None);
    assert_eq!(goroutines.meta().measure, Measure { name: "goroutine".into(), unit: Unit::Count });
    assert_eq!(amounts(&goroutines), ["main.main 1", "main.wait 3"]);
    let threads = text("threadcreate profile: total 4\n4 @\n#\t0x0\n", None);
    assert_eq!(amounts(&threads), ["(unknown) 4"]);
    assert!(read_text(b"goroutine 1 [running]:\n", None).is_err());
}

#[test]
fn lines_that_are_no_stacks_are_counted() {
    let imported = read_text(b"goroutine profile: total 2\nnonsense\n2 @ 0x10\n", None).unwrap();
    assert_eq!(stacks_of(&imported.profile), ["0xf 1"]);
    assert_eq!(imported.notes, [Note::LeftOut { count: 1, what: "lines that are not stacks".into() }]);
}

/// The samples of a thread are counted, and those that are the same as the thread before, too. As in pprof, what has
/// created a thread is a caller.
#[test]
fn threads_are_counted_by_their_stacks() {
    let file = "--- threadz 1 ---\n\n--- Thread 7f79 (name: main/14748) stack: ---\n  \
        PC:  0x00bc8f1c: helper(arg *)\n  0x0040be31: main\n\
        --- Thread 7f78 (name: a/14751) stack: ---\n  PC: 0x401010 0x402020\n      creator: 0x403030\n\
        --- Thread 7f77 (name: b/14752) stack: ---\n  [same as previous thread]\n\
        --- Memory map: ---\n  00400000-00500000: /home/x/server\n";
    let threads = text(file, None);
    assert_eq!(threads.meta().measure, Measure { name: "thread".into(), unit: Unit::Count });
    assert_eq!(amounts(&threads), ["0x302f;0x201f;0x1010 2", "main;helper(arg *) 1"]);
    assert_eq!(threads.libs()[0].path, "/home/x/server");
    assert!(read_text(b"--- threadz 1 ---\n", None).is_err());
    let without = read_text(
        b"--- Thread 7 (name: a/1) stack: ---\n  0x4: f\n--- Thread 8 (name: b/2) stack: ---\n",
        None,
    );
    let expected = [Note::LeftOut { count: 1, what: "threads without a stack".into() }];
    assert_eq!(
        (stacks_of(&without.as_ref().unwrap().profile), &*without.unwrap().notes),
        (vec!["f 1".into()], &expected[..])
    );
}

#[test]
fn contention_of_gperftools_is_that_of_go() {
    let file = format!(
        "--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\nms since reset = 7\n\
        discarded samples = 0\n  4000       27 @ 0x55c70b5a7124 0x7febe164524b\n--- Memory map: ---\n{MAPS}"
    );
    assert_eq!(amounts(&text(&file, None)), ["0x2824a;0x1123 200000"]);
    assert_eq!(amounts(&text(&file, Some("contentions"))), ["0x2824a;0x1123 2700"]);
}

const JAVA_NAMES: &str = "\n 0x0000003 com.example.f (Example.java:17)\n 0x4 com.example.main (Example.java:-1)\n \
    0x00000005 GC\n 0x6 f (/usr/lib/libx.so)\n 0x7 generated stub/JIT\n";

#[test]
fn profiles_of_java_have_their_own_names() {
    let contention = format!(
        "--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\nms since reset = 9\n\
        \x20          14     1 @ 0x00000003 0x00000004\n     2     3 @ 0x00000005\n{JAVA_NAMES}"
    );
    assert_eq!(amounts(&text(&contention, None)), ["GC 200000", "com.example.main;com.example.f 1400000"]);
    let counts = text(&contention, Some("contentions"));
    assert_eq!(amounts(&counts), ["GC 300", "com.example.main;com.example.f 100"]);
    let frame = counts.frames().iter().find(|it| counts.func_name(it.func) == "com.example.f").unwrap();
    assert_eq!(frame.line, Some(17));
    // 7048 / (1 - e^(-7048 / 524288)), as pprof has it.
    let heap =
        format!("--- heapz 1 ---\nformat = java\nresolution = bytes\n  7048     1 @ 0x6 0x7\n{JAVA_NAMES}");
    assert_eq!(amounts(&text(&heap, None)), ["STUB;f 527819"]);
    assert_eq!(amounts(&text(&heap, Some("inuse_objects"))), ["STUB;f 74"]);
    assert!(read_text(heap.as_bytes(), Some("alloc_space")).is_err());
}

#[test]
fn cpu_profiles_of_java_have_names() {
    let words = [0, 3, 1, 10_000, 0, 2, 2, 3, 4, 5, 1, 5, 0, 1, 0_u64];
    let mut file: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    file.extend(JAVA_NAMES.as_bytes());
    assert!(is_cpu(&file));
    let profile = read_cpu(&file).unwrap().profile;
    assert!(profile.meta().measure.is_cpu_time() && profile.meta().symbolicated);
    assert_eq!(stacks_of(&profile), ["GC 5", "com.example.main;com.example.f 2"]);
}
