//! The executed code: libs, sources, functions, symbols, frames and stacks.

use serde::Serialize;

use crate::category::CategoryPair;
use crate::id::{FrameId, FuncId, LibId, NativeSymbolId, SourceId, StackId, StringId};

/// An executable or shared library, called a *lib* in the profile format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Lib {
    /// The file's name, for display.
    pub name: String,
    /// The path of the file when it was mapped.
    pub path: String,
    /// The name used to find debug info; usually equal to `name`. The builder replaces a `/` in
    /// it.
    pub debug_name: String,
    /// The path of the debug info; usually equal to `path`.
    pub debug_path: String,
    /// The debug id in Breakpad's form: GUID and age in 33 or more upper-case hex digits; empty if the
    /// file has none.
    pub breakpad_id: String,
    /// The code id, which finds the binary: for ELF the whole build id in lower-case hex.
    pub code_id: Option<String>,
    /// The architecture in the Firefox Profiler's form, such as `x86_64` or `arm64`.
    pub arch: Option<String>,
}

/// A source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its path, from the debug info or the runtime.
    pub filename: StringId,
}

/// The identity of a function: frames of the same function share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    /// Its name, demangled; for an address without a symbol, text such as `0x12ab`.
    pub name: StringId,
    /// The lib of its code. All frames of a func are in this lib, so frames in a lib and frames without one
    /// never share a func. Otherwise the Firefox Profiler would rename both when it symbolicates one.
    pub lib: Option<LibId>,
    /// The file that defines the function.
    pub source: Option<SourceId>,
    /// The first line of the function, from 1.
    pub line: Option<u32>,
    /// The first column of the function, from 1.
    pub column: Option<u32>,
    /// The kind of its code.
    pub kind: FuncKind,
}

impl Func {
    /// A function of native code with only a name and a lib.
    pub fn new(name: StringId, lib: Option<LibId>) -> Self {
        Self { name, lib, source: None, line: None, column: None, kind: FuncKind::Native }
    }
}

/// The front end's stack views that include a function: native code, JavaScript, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FuncKind {
    /// Native code, or code of another runtime.
    #[default]
    Native,
    /// Native code that is also shown among JavaScript, such as the functions that scripts call in a browser.
    RelevantForJavaScript,
    /// A function of JavaScript.
    JavaScript,
}

/// An entry of a lib's symbol table: a function of the machine code, into which others may be inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NativeSymbol {
    /// The lib of the symbol.
    pub lib: LibId,
    /// Its first byte's relative address.
    pub address: u32,
    /// Its size in bytes, if known.
    pub size: Option<u32>,
    /// Its name, demangled.
    pub name: StringId,
}

/// A position on a stack. Its lib is its function's ([`Profile::frame_lib`](crate::Profile::frame_lib)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The relative lookup address in the func's lib: the instruction pointer of a leaf, otherwise the
    /// return address - 1. `None` for labels and for code without a lib. Addresses of more than 31 bits
    /// are not written. A func with both written and unwritten addresses is written as two.
    pub address: Option<u32>,
    /// 0 for the outermost function at this address. Its inlined callees, which are its children in the
    /// stack with the same address and native symbol, have 1, 2, ...
    pub inline_depth: u16,
    /// The kind of code; `None` inherits the category of the calling frame.
    pub category: Option<CategoryPair>,
    /// The function.
    pub func: FuncId,
    /// The symbol that contains the address, also for inlined frames.
    pub native_symbol: Option<NativeSymbolId>,
    /// The file of the line, if it differs from the function's: for code that the function includes.
    /// `None` if it is the function's ([`Profile::frame_source`](crate::Profile::frame_source)).
    pub source: Option<SourceId>,
    /// The line executed, from 1.
    pub line: Option<u32>,
    /// The column executed, from 1.
    pub column: Option<u32>,
}

impl Frame {
    /// A frame of `func` with no other data: a label.
    pub fn label(func: FuncId) -> Self {
        Self {
            address: None,
            inline_depth: 0,
            category: None,
            func,
            native_symbol: None,
            source: None,
            line: None,
            column: None,
        }
    }
}

/// A node of the tree of all stacks. A node's prefix has a smaller id than the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The stack of the callers; `None` at the root.
    pub prefix: Option<StackId>,
    /// The innermost frame.
    pub frame: FrameId,
}
