//! State of each thread: the ring that it writes to, and the kinds defined in it.

use crate::protocol::{self, MarkerKind};
use crate::ring::Ring;
use crate::{session, sys};
use std::cell::RefCell;
use std::collections::HashMap;
#[cfg(feature = "tracing")]
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;

/// Rings of ended threads, so that a program that starts a thread for each request needs no file for each.
static UNUSED: Mutex<Vec<Writer>> = Mutex::new(Vec::new());

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { session: 0, writer: None }) };
}

struct Local {
    /// The session of `writer`. If its file could not be created, there is no writer.
    session: u32,
    writer: Option<Writer>,
}

/// A ring, and the definitions that were already written to it.
#[derive(Debug)]
pub(crate) struct Writer {
    session: u32,
    ring: Ring,
    #[cfg(feature = "tracing")]
    kinds: HashMap<usize, u32, BuildHasherDefault<AddressHasher>>,
    plain_kinds: HashMap<Vec<&'static str>, u32>,
    last_kind: u32,
    records: Vec<u8>,
}

impl Drop for Local {
    fn drop(&mut self) {
        if let (Some(writer), Ok(mut unused)) = (self.writer.take(), UNUSED.try_lock()) {
            unused.push(writer);
        }
    }
}

/// Calls `write` with the thread's writer, if a recorder listens. Markers that come while it is in use, or
/// from a thread that is ending, are left out.
pub(crate) fn with_writer(write: impl FnOnce(&mut Writer)) {
    let session = session::current();
    if session == 0 {
        return;
    }
    let _ = LOCAL.try_with(|local| {
        if let Ok(mut local) = local.try_borrow_mut() {
            if local.session != session {
                local.session = session;
                local.writer = Writer::reuse(session).or_else(|| Writer::create(session));
            }
            if let Some(writer) = &mut local.writer {
                write(writer);
            }
        }
    });
}

impl Writer {
    fn reuse(session: u32) -> Option<Self> {
        let mut unused = UNUSED.try_lock().ok()?;
        // Rings of ended sessions, such as the parent process's, are no longer needed.
        unused.retain(|writer| writer.session == session);
        let mut writer = unused.pop()?;
        drop(unused);
        writer.begin_thread();
        Some(writer)
    }

    fn create(session: u32) -> Option<Self> {
        let ring = Ring::create(&session::place()?).ok()?;
        let mut writer = Self {
            session,
            ring,
            #[cfg(feature = "tracing")]
            kinds: HashMap::default(),
            plain_kinds: HashMap::new(),
            last_kind: protocol::PLAIN_KIND,
            records: Vec::with_capacity(256),
        };
        writer.begin_thread();
        Some(writer)
    }

    fn begin_thread(&mut self) {
        self.records.clear();
        protocol::put_thread(&mut self.records, sys::thread_id());
        // The thread must be written before its markers.
        if !self.ring.push(&self.records) {
            self.session = 0;
        }
    }

    /// Appends the output of `write`, all or nothing.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.records.clear();
        write(&mut self.records);
        self.ring.push(&self.records)
    }

    /// The number of the kind that is identified by an address, which is defined at its first use. `None`
    /// if there was no space for the definition.
    #[cfg(feature = "tracing")]
    pub(crate) fn kind<'k>(
        &mut self,
        address: usize,
        define: impl FnOnce() -> MarkerKind<'k>,
    ) -> Option<u32> {
        if let Some(&kind) = self.kinds.get(&address) {
            return Some(kind);
        }
        let number = self.define(&define())?;
        self.kinds.insert(address, number);
        Some(number)
    }

    /// The number of the kind of markers with these fields and individual names.
    pub(crate) fn plain_kind(&mut self, keys: &[&'static str]) -> Option<u32> {
        if let Some(&kind) = self.plain_kinds.get(keys) {
            return Some(kind);
        }
        let fields = keys.iter().map(|key| protocol::Field { key, ..protocol::Field::default() }).collect();
        let number = self.define(&MarkerKind { name: "marker".into(), fields, ..MarkerKind::default() })?;
        self.plain_kinds.insert(keys.to_vec(), number);
        Some(number)
    }

    fn define(&mut self, kind: &MarkerKind<'_>) -> Option<u32> {
        let number = self.last_kind + 1;
        self.push(|records| protocol::put_kind(records, number, kind)).then(|| {
            self.last_kind = number;
            number
        })
    }
}

/// Hashes an address: multiplication spreads it, and the upper half is used.
#[cfg(feature = "tracing")]
#[derive(Debug, Default)]
pub(crate) struct AddressHasher(u64);

#[cfg(feature = "tracing")]
impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}
