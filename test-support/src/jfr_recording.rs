//! Made-up recordings of Java Flight Recorder in the format of the JDK.

/// Classes with their numbers and fields: name, class, and `c` for constants, `a` for arrays, `t` for ticks.
type Classes = [(u64, &'static str, &'static [(&'static str, u64, &'static str)])];

const LONG: u64 = 4;
const INT: u64 = 5;
const BOOLEAN: u64 = 6;
const STRING: u64 = 20;
const THREAD: u64 = 21;
const CLASS: u64 = 22;
const SYMBOL: u64 = 23;
const METHOD: u64 = 24;
const TRACE: u64 = 25;
const FRAME: u64 = 26;
const FRAME_TYPE: u64 = 27;
const STATE: u64 = 28;
/// The class of such events.
pub const EXECUTION: u64 = 101;
const ALLOCATION: u64 = 102;
const PARK: u64 = 103;
/// The class of such events.
pub const SETTING: u64 = 104;
const JVM: u64 = 105;
/// The class of such events.
pub const WALL: u64 = 106;

const CLASSES: &Classes = &[
    (LONG, "long", &[]),
    (INT, "int", &[]),
    (BOOLEAN, "boolean", &[]),
    (STRING, "java.lang.String", &[]),
    (
        THREAD,
        "java.lang.Thread",
        &[
            ("osName", STRING, ""),
            ("osThreadId", LONG, ""),
            ("javaName", STRING, ""),
            ("javaThreadId", LONG, ""),
        ],
    ),
    (CLASS, "java.lang.Class", &[("name", SYMBOL, "c")]),
    (SYMBOL, "jdk.types.Symbol", &[("string", STRING, "")]),
    (METHOD, "jdk.types.Method", &[("type", CLASS, "c"), ("name", SYMBOL, "c")]),
    (TRACE, "jdk.types.StackTrace", &[("truncated", BOOLEAN, ""), ("frames", FRAME, "a")]),
    (
        FRAME,
        "jdk.types.StackFrame",
        &[("method", METHOD, "c"), ("lineNumber", INT, ""), ("type", FRAME_TYPE, "c")],
    ),
    (FRAME_TYPE, "jdk.types.FrameType", &[("description", STRING, "")]),
    (
        EXECUTION,
        "jdk.ExecutionSample",
        &[
            ("startTime", LONG, "t"),
            ("sampledThread", THREAD, "c"),
            ("stackTrace", TRACE, "c"),
            ("state", STATE, "c"),
        ],
    ),
    (STATE, "jdk.types.ThreadState", &[("name", STRING, "")]),
    (
        ALLOCATION,
        "jdk.ObjectAllocationSample",
        &[
            ("startTime", LONG, "t"),
            ("eventThread", THREAD, "c"),
            ("stackTrace", TRACE, "c"),
            ("weight", LONG, ""),
        ],
    ),
    (
        PARK,
        "jdk.ThreadPark",
        &[
            ("startTime", LONG, "t"),
            ("duration", LONG, "t"),
            ("eventThread", THREAD, "c"),
            ("stackTrace", TRACE, "c"),
            ("parkedClass", CLASS, "c"),
        ],
    ),
    (SETTING, "jdk.ActiveSetting", &[("startTime", LONG, "t"), ("name", STRING, ""), ("value", STRING, "")]),
    (
        JVM,
        "jdk.JVMInformation",
        &[("startTime", LONG, "t"), ("javaArguments", STRING, ""), ("pid", LONG, "")],
    ),
    (
        WALL,
        "profiler.WallClockSample",
        &[
            ("startTime", LONG, "t"),
            ("sampledThread", THREAD, "c"),
            ("stackTrace", TRACE, "c"),
            ("samples", INT, ""),
        ],
    ),
];

/// The bytes of a chunk.
pub struct Writer {
    bytes: Vec<u8>,
    is_compressed: bool,
}

impl Writer {
    fn new(is_compressed: bool) -> Self {
        Self { bytes: Vec::new(), is_compressed }
    }

    /// A number of 64 bits.
    pub fn long(&mut self, mut number: u64) -> &mut Self {
        if !self.is_compressed {
            self.bytes.extend(number.to_be_bytes());
            return self;
        }
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
        self
    }

    /// A number of 32 bits.
    pub fn int(&mut self, number: u64) -> &mut Self {
        if self.is_compressed {
            return self.long(number);
        }
        self.bytes.extend((number as u32).to_be_bytes());
        self
    }

    /// A byte.
    pub fn byte(&mut self, byte: u8) -> &mut Self {
        self.bytes.push(byte);
        self
    }

    /// A text, unchanged.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.byte(3).int(text.len() as u64);
        self.bytes.extend(text.as_bytes());
        self
    }

    /// An event of this class. Its size has four bytes, with the JDK's padding.
    pub fn event(&mut self, class: u64, fields: impl FnOnce(&mut Self)) {
        let mut event = Self::new(self.is_compressed);
        event.long(class);
        fields(&mut event);
        let size = event.bytes.len() as u32 + 4;
        if self.is_compressed {
            let bytes = [0, 7, 14, 21].map(|shift| (size >> shift) as u8 & 0x7f | 0x80);
            self.bytes.extend([bytes[0], bytes[1], bytes[2], bytes[3] & 0x7f]);
        } else {
            self.bytes.extend(size.to_be_bytes());
        }
        self.bytes.extend(event.bytes);
    }
}

/// An element of the metadata: its name, attributes and children.
struct Element(&'static str, Vec<(&'static str, String)>, Vec<Element>);

fn metadata() -> Element {
    let classes = CLASSES.iter().map(|&(id, name, fields)| {
        let fields = fields.iter().map(|&(name, class, flags)| {
            let mut attributes = vec![("name", name.to_owned()), ("class", class.to_string())];
            attributes.extend(flags.contains('c').then(|| ("constantPool", "true".to_owned())));
            attributes.extend(flags.contains('a').then(|| ("dimension", "1".to_owned())));
            let ticks = || Element("annotation", vec![("value", "TICKS".to_owned())], Vec::new());
            Element("field", attributes, flags.contains('t').then(ticks).into_iter().collect())
        });
        Element("class", vec![("id", id.to_string()), ("name", name.to_owned())], fields.collect())
    });
    Element("root", Vec::new(), vec![Element("metadata", Vec::new(), classes.collect())])
}

fn write_element(element: &Element, strings: &mut Vec<String>, out: &mut Writer) {
    let mut index = |text: &str| {
        let known = strings.iter().position(|it| it == text);
        known.unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        }) as u64
    };
    out.int(index(element.0)).int(element.1.len() as u64);
    for (key, value) in &element.1 {
        out.int(index(key)).int(index(value));
    }
    out.int(element.2.len() as u64);
    for child in &element.2 {
        write_element(child, strings, out);
    }
}

/// `Main.main` (line 3), which calls `Work.spin` (line 7): stack 1; and `Main.main` alone: stack 2. State 1 is that of
/// a thread that runs, and state 2 that of one that sleeps.
fn constants(out: &mut Writer) {
    let symbols = ["Main", "main", "org/Work", "spin"];
    out.event(1, |out| {
        out.long(0).long(0).long(0).byte(1).int(7);
        out.long(SYMBOL).int(4);
        for (key, symbol) in (1..).zip(symbols) {
            out.long(key).text(symbol);
        }
        out.long(CLASS).int(2).long(1).long(1).long(2).long(3);
        out.long(METHOD).int(2).long(1).long(1).long(2).long(2).long(2).long(4);
        out.long(FRAME_TYPE).int(1).long(1).text("JIT compiled");
        out.long(STATE).int(2).long(1).text("STATE_DEFAULT").long(2).text("STATE_SLEEPING");
        out.long(TRACE).int(2);
        out.long(1).byte(0).int(2).long(2).int(7).long(1).long(1).int(3).long(1);
        out.long(2).byte(1).int(1).long(1).int(3).long(1);
        out.long(THREAD).int(2);
        out.long(1).text("os main").long(70).text("main").long(1);
        out.long(2).text("GC").long(71).byte(0).long(0);
    });
}

/// A chunk with these events. It begins at 1,000 s, when its clock of 1 MHz has the value 500.
pub fn chunk(is_compressed: bool, events: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new(is_compressed);
    events(&mut out);
    constants(&mut out);
    let (mut strings, mut elements) = (Vec::new(), Writer::new(is_compressed));
    write_element(&metadata(), &mut strings, &mut elements);
    out.event(0, |out| {
        out.long(0).long(0).long(1).int(strings.len() as u64);
        for string in &strings {
            out.text(string);
        }
        out.bytes.extend(elements.bytes);
    });
    let mut chunk = b"FLR\0\0\x02\0\x01".to_vec();
    let size = out.bytes.len() as u64 + 68;
    for number in [size, 0, 0, 1_000_000_000_000, 0, 500, 1_000_000] {
        chunk.extend(number.to_be_bytes());
    }
    chunk.extend([0, 0, 0, u8::from(is_compressed)]);
    chunk.extend(out.bytes);
    chunk
}

/// Two samples of execution, one of allocations and a wait.
pub fn events(out: &mut Writer) {
    out.event(JVM, |out| {
        out.long(500).text("/opt/app.jar --fast").long(77);
    });
    out.event(SETTING, |out| {
        out.long(500).text("period").text("20 ms");
    });
    out.event(EXECUTION, |out| {
        out.long(1500).long(1).long(1).long(1);
    });
    out.event(EXECUTION, |out| {
        out.long(3500).long(1).long(2).long(1);
    });
    out.event(ALLOCATION, |out| {
        out.long(4000).long(1).long(1).long(4096);
    });
    out.event(PARK, |out| {
        out.long(5500).long(250).long(2).long(2).long(2);
    });
}
