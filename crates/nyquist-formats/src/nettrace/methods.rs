//! Which method is at an address, by the events of the runtime.

use rustc_hash::FxHashMap;

use crate::le_cursor::LeCursor;

/// The flag of code that was compiled while the program ran.
const JITTED: u32 = 8;

/// The code of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    start: u64,
    end: u64,
    pub(super) module: u64,
    /// As in C#, with its types: `System.String.Concat(class System.String)`.
    pub(super) name: String,
    pub(super) is_jit: bool,
}

impl Method {
    /// From the payload of an event, in all its versions.
    pub(super) fn of(payload: &[u8]) -> Option<Self> {
        let mut cursor = LeCursor::new(payload);
        let (_id, module, start) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let (size, _token, flags) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (class, method, signature) = (cursor.utf16(), cursor.utf16(), cursor.utf16());
        let end = start.checked_add(u64::from(size))?;
        Some(Self {
            start,
            end,
            module,
            name: name(&class, &method, &signature),
            is_jit: flags & JITTED != 0,
        })
    }
}

/// A method's name with the types of its parameters, without the one that it returns.
fn name(class: &str, method: &str, signature: &str) -> String {
    let parameters = signature.find('(').map_or("", |at| &signature[at..]);
    let dot = if class.is_empty() { "" } else { "." };
    format!("{class}{dot}{method}{parameters}")
}

/// The methods and modules of a trace.
#[derive(Default)]
pub(super) struct Methods {
    methods: Vec<Method>,
    /// The path of each module, by its number.
    modules: FxHashMap<u64, String>,
}

impl Methods {
    pub(super) fn add(&mut self, method: Method) {
        self.methods.push(method);
    }

    /// Adds a module by the payload of its event.
    pub(super) fn add_module(&mut self, payload: &[u8]) -> Option<()> {
        let mut cursor = LeCursor::new(payload);
        let (id, _assembly) = (cursor.u64()?, cursor.u64()?);
        let (_flags, _reserved) = (cursor.u32()?, cursor.u32()?);
        let path = cursor.utf16();
        if !path.is_empty() {
            self.modules.entry(id).or_insert(path);
        }
        Some(())
    }

    /// Sorts the methods. Of those with the same code, the last one counts.
    pub(super) fn sort(&mut self) {
        self.methods.sort_by_key(|method| method.start);
    }

    /// The number of the method at an address.
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let after = self.methods.partition_point(|method| method.start <= address);
        let number = after.checked_sub(1)?;
        self.methods.get(number).filter(|method| address < method.end).map(|_| number)
    }

    /// The method with a number, and the path of its module.
    pub(super) fn get(&self, number: usize) -> Option<(&Method, Option<&str>)> {
        let method = self.methods.get(number)?;
        Some((method, self.modules.get(&method.module).map(String::as_str)))
    }
}
