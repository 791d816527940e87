//! The first inputs of the target `formats`: files of other tools.

use std::path::Path;
use std::{fs, io};

use nyquist_formats::{Format, ProcessLabels, as_named, otlp, parquet, perfetto, read};
use nyquist_test_support::{art_trace, jfr_recording, nettrace, sysprof};

use super::corpus::write;

/// Austin's binary form: two samples of a thread with frames, a kernel's, the garbage collector, a repeated stack and a
/// task.
const AUSTIN: &[u8] = b"MOJ\x03\x01mode\0full\0\x02\x07\0a\0\x0b\x02a.py\0\x0b\x03f\0\x03\x01\x02\x03\x05\x05\x02\x09\
    \x05\x01\x06read\0\x07\x09\x90\x1f\x08\x0a\x80\x40\x02\x07\0a\0\x0e\x09\x03\x01\x05\x01\x0f\x09\0\x10\x09\x0d\x09\x05\x0a\xc0\x01";

/// simpleperf's report: two threads, two events, a file with symbols.
const SIMPLEPERF: &[u8] =
    b"SIMPLEPERF\x01\x00\x1a\x00\x00\x00*\x18\x0a\x09cpu-clock\x0a\x06faults\x12\x03app\x1f\x00\x00\x00\x0a\
    \x1d\x08\xe8\x07\x10\x07\x1a\x07\x08\x80 \x10\x00\x18\x01\x1a\x07\x08\x80 \x10\x00\x18\x00 \x90\xa1\x0f(\
    \x00\x1f\x00\x00\x00\x0a\x1d\x08\xd0\x0f\x10\x09\x1a\x07\x08\x80 \x10\x00\x18\x01\x1a\x07\x08\x80 \x10\
    \x00\x18\x00 \x90\xa1\x0f(\x01\x17\x00\x00\x00\x1a\x15\x08\x00\x12\x05/a.so\x1a\x04main\x1a\x04work\x0c\
    \x00\x00\x00\x22\x0a\x08\x09\x10\x07\x1a\x04pool\x00\x00\x00\x00";

/// A trace of Perfetto with samples by counters: names that are interned, and in the sample.
const STACK_SAMPLE: &[u8] = b"\x0a:@\x01P\x09b4*\x08\x08\x01\x12\x04main2\x04\x08\x01\x10\x01:\x04\x08\x01\x10\x01\x82\x03\x06\x08\x03\x10\x05\x18\x06\x92\x03\x12\x08\x04\x12\x09cpu-clock\x18\x01(\xe8\x07\x0a\x15@\x07P\x09\xba\x08\x0e\x10\x030\x01P\x04X\x02j\x01\x04r\x01\x07\x0a1@\x09P\x09\xba\x08*\x0a\x04\x10\x05\x18\x07*\x0c\x0a\x0a\x0a\x01f\x12\x03a.c\x18\x04J\x12\x08\x04\x12\x09cpu-clock\x18\x01(\xe8\x07X\x03";

/// Files of other tools, behind the byte that chooses their format.
pub(super) fn write_all() -> io::Result<()> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/nyquist-formats/tests/samples");
    let files = [(0, "perf-6.1.txt"), (4, "node-20.cpuprofile"), (3, "py-spy-0.4.speedscope.json")];
    for (number, (choice, name)) in files.into_iter().enumerate() {
        write("formats", number, &[&[choice], fs::read(samples.join(name))?.as_slice()].concat())?;
    }
    let texts: [(u8, &str); 29] = [
        (
            22,
            "heap profile: 1: 2 [3: 4] @ heap/2048\n1: 2 [3: 4] @ 0x1235\n#\t0x1234\tmain.a+0x4\t/g.go:1\nMAPPED_LIBRARIES:\n1000-2000 r-xp 0 00:00 1 /bin/a\n",
        ),
        (22, "--- mutex:\ncycles/second=10\nsampling period=2\n7 3 @ 0x10 0x20\n"),
        (2, "main;work 17\nmain;wait_[k] 3\n"),
        (
            5,
            r#"{"traceEvents":[{"ph":"B","name":"a","pid":1,"tid":2,"ts":1},{"ph":"X","name":"b","pid":1,"tid":2,"ts":2,"dur":3},{"ph":"E","pid":1,"tid":2,"ts":9}]}"#,
        ),
        (
            6,
            r#"<trace-query-result><node><row><sample-time id="1">1</sample-time><thread id="2" fmt="t 0x1"><tid id="3">1</tid></thread><weight id="4">5</weight><backtrace id="5"><frame id="6" name="f" addr="0x1"/></backtrace></row><row><sample-time>9</sample-time><thread ref="2"/><backtrace ref="5"/></row></node></trace-query-result>"#,
        ),
        (
            7,
            "pid: 7\ncmd: ./a\npositions: line\nevents: Ir Time_(10ns)\nob=(1) a\nfl=(1) a.c\nfn=(1) main\n1 5 2\ncfi=(2) b.c\ncfn=(2) work\ncalls=3 9\n+2 40\nfl=(2)\nfn=(2)\nfi=(1)\n* 40\n",
        ),
        (
            8,
            r#"{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"children":[{"callFrame":{"functionName":"a","url":"a.js","lineNumber":3},"selfSize":64,"children":[]}]}}"#,
        ),
        (9, "# mode: full\nP7;T0:7;a.py:f:3;:GC: 250,0,4096\nP7;T0:9 30,1,-5\n"),
        (
            10,
            r#"{"mode":"cpu","interval":1000,"missed_samples":0,"frames":{"1":{"name":"a","samples":2,"edges":{"2":3}},"2":{"name":"b","file":"b.rb","line":3,"samples":3}},"raw":[1,1,2,2,1,2,3]}"#,
        ),
        (11, "{)\x03z\x01ai\x01\0\0\0z\x01f)\x05i\x01\0\0\0r\0\0\0\0g\0\0\0\0\0\0\x10\x40N{00"),
        (
            12,
            r#"{"root_frame":{"function":"a","file_path":"a.py","line_no":1,"time":0.5,"children":[{"function":"b","time":0.25,"children":[]}]}}"#,
        ),
        (
            13,
            "Analysis of sampling a (pid 7) every 1 millisecond\nCall graph:\n    3 Thread_1: x\n    + 3 f  (in a) + 5  [0x1005]  a.c:3\n    +   1 g  (in b) + 1  [0x9]\n\nBinary Images:\n  0x1000 - 0x1fff +a (1) <AB-CD> /bin/a\n",
        ),
        (14, "  a`f+0x3\n  a`main+0x9\n   17\n\n  b`g+0x1\n   2\n"),
        (15, "@[\n    schedule+35\n, \n    main+1\n, sh, 7]: 2\n@u[\n\t7f00 read+7 (/lib/libc.so.6)\n]: 9\n"),
        (
            16,
            "v 10400 3\nX ./a\ns 1 a\ns 4 main\ns 3 a.c\ni 1000 1 2 3 7 2 3 9\nt 1 0\na 64 1\n+ 0\n+ 0\n- 0\nc 5\n",
        ),
        (
            17,
            r#"{"dhatFileVersion":2,"cmd":"./a","pid":7,"pps":[{"tb":10,"tbk":1,"fs":[1,0]}],"ftbl":["[root]","0x1: main (a.c:3)"]}"#,
        ),
        (
            24,
            r#"{"head":{"functionName":"(root)","id":1,"children":[{"functionName":"f","url":"a.js","lineNumber":3,"id":2,"children":[]}]},"startTime":1,"endTime":2,"samples":[2,1],"timestamps":[1000000,1001000]}"#,
        ),
        (
            25,
            r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"7"}}]},"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},"samples":[{"stackIndex":1,"values":["3"],"timestampsUnixNano":["9"]}]}]}]}],"dictionary":{"locationTable":[{},{"lines":[{"functionIndex":1,"line":"4"}]}],"functionTable":[{},{"nameStrindex":3}],"stringTable":["","cpu","nanoseconds","main"],"stackTable":[{},{"locationIndices":[1]}]}}"#,
        ),
        (
            29,
            "v8-version,11,3,244,8,-node.38,0\nshared-library,/usr/bin/node,0x400000,0xb71000,0\nprofiler,begin,1000\ncode-creation,JS,10,9,0x2000,256,run a\\x2Cb.js:7:3,0x99,~\ntick,0x2010,80000,0,0x0,0,0x400010,+0x5\ncode-move,0x2000,0x8000\ntick,0x8010,90000,1,0x400020,1,overflow\n",
        ),
        (
            30,
            r#"{"program":"/bin/app","tick_interval":1000,"cost_centres":[{"id":1,"label":"MAIN","module":"MAIN","src_loc":"<built-in>"},{"id":2,"label":"f","module":"Main","src_loc":"a.hs:(7,1)-(9,4)"}],"profile":{"id":1,"ticks":3,"children":[{"id":2,"entries":5,"alloc":800,"ticks":20}]}}"#,
        ),
        (
            31,
            "Function Stack,CPU Time:Self,Module\nTotal,0.0,[Unknown]\n main,0.020,app\n  \"f<int, 2>\",0.040,app\n",
        ),
        (
            32,
            "Level,Function Name,Number of Calls,Avg Elapsed Exclusive Time,Exclusive Samples,Module Name\n0,\"a\",\"1,000\",0.5,3,\"a.exe\"\n1,b,2,1.5,4,b.dll\n",
        ),
        (
            33,
            "x Time and Allocation Profiling Report\n app +RTS\n total time  =  0.02 secs   (20 ticks @ 1000 us, 1 processor)\ntotal alloc =  1,000 bytes\nCOST CENTRE MODULE SRC entries\nMAIN        MAIN   <no x>    337   0    5.0    0.5   100.0  100.0 3 4\n f          M      a.hs:(3,1)-(4,5) 7   1    5.0    0.5   100.0  100.0 5 6\n",
        ),
        (
            22,
            "--- threadz 1 ---\n--- Thread 7f (name: a/7) stack: ---\n  PC: 0x1010: f(int)\n  0x1020\n--- Thread 80 (name: b/8) stack: ---\n  [same as previous thread]\n--- Memory map: ---\n  1000-2000: /bin/a\n",
        ),
        (
            22,
            "--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 3\n 14 1 @ 0x3 0x4\n 0x3 a.f (A.java:7)\n 0x4 g (/x.so)\n",
        ),
        (22, "--- heapz 1 ---\nformat = java\nresolution = bytes\n 70 2 @ 0x3\n 0x3 GC\n"),
        (
            34,
            "@ cycles [9 samples]\n\n90.0%  [9]  f @ /boot/kernel/zfs.ko\n 50.0%  [5]   g\n  20.0%  [1]    h @ /bin/a\n\n@ x [1 samples]\n10%  [1] f\n",
        ),
        (
            35,
            r#"{"version":1,"recording":{"displayName":"a","sampleStackTraces":[{"timestamp":4.5,"stackFrames":[{"name":"f","line":2,"url":"a.js","expressionLocation":{"line":3,"column":1}}]}],"sampleDurations":[0.001]}}"#,
        ),
        (
            36,
            r#"{"markers":[],"ticks":[],"allocations":{},"profile":{"meta":{"interval":1},"threads":[{"name":"a","pid":5,"tid":7,"samples":{"schema":{"stack":0,"time":1},"data":[[1,0.5],[0,2.5]]},"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1]]},"frameTable":{"schema":{"location":0,"line":3},"data":[[0],[1,null,null,9]]},"stringTable":["(root)","f (a.js:4:2)"]}]}}"#,
        ),
    ];
    let texts_end = 3 + texts.len();
    for (number, (choice, text)) in texts.into_iter().enumerate() {
        write("formats", 3 + number, &[&[choice], text.as_bytes()].concat())?;
    }
    let profile = read(Format::Folded, b"main;work 17\nmain 1\n");
    let profile = profile.map_err(io::Error::other)?.profile;
    let mut otlp = vec![19_u8];
    otlp::write(&profile, &as_named, &mut otlp)?;
    let mut perfetto = vec![20_u8];
    perfetto::write(&profile, &as_named, &mut perfetto)?;
    let words = [0, 3, 0, 10_000, 0, 2, 2, 0x1234, 0x1567, 0, 1, 0];
    let gperftools: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let gperftools = [&[21], gperftools.as_slice(), b"1000-2000 r-xp 0 00:00 1 /bin/a\n"].concat();
    let jfr = jfr_recording::chunk(true, jfr_recording::events);
    let jfr = [&[18], jfr.as_slice()].concat();
    let austin = [&[23], AUSTIN].concat();
    let nettrace = [&[26], nettrace::trace().as_slice()].concat();
    let simpleperf = [&[27], SIMPLEPERF].concat();
    let art = [&[28], art_trace::dual().as_slice()].concat();
    let streamed = [&[28], art_trace::streamed().as_slice()].concat();
    let mut table = vec![38_u8];
    let labels =
        |_| ProcessLabels { service: "app".into(), labels: vec![("unit".into(), "a.service".into())] };
    let options = parquet::WriteOptions { paths: &as_named, slice: Some(1_000_000_000), labels: &labels };
    parquet::write(&profile, options, &mut table)?;
    let java = [0, 3, 1, 10_000, 0, 2, 2, 3, 4, 0, 1, 0];
    let java: Vec<u8> = java.into_iter().flat_map(u64::to_le_bytes).collect();
    let java = [&[21], java.as_slice(), b" 0x3 a.f (A.java:7)\n 0x4 GC\n"].concat();
    let sysprof = [&[37], sysprof::capture().as_slice()].concat();
    let counters = [&[20], STACK_SAMPLE].concat();
    let seeds = [
        otlp, perfetto, gperftools, jfr, austin, nettrace, simpleperf, art, streamed, table, java, sysprof,
        counters,
    ];
    for (number, seed) in seeds.iter().enumerate() {
        write("formats", texts_end + number, seed)?;
    }
    Ok(())
}
