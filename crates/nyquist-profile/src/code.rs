//! What was executed: libs, sources, functions, symbols, frames and stacks.

use serde::Serialize;

use crate::category::CategoryPair;
use crate::id::{FrameId, FuncId, LibId, NativeSymbolId, SourceId, StackId, StringId};

/// An executable or shared library, in the field's words for the profile a *lib*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Lib {
    /// The file's name, for showing.
    pub name: String,
    /// Where the file was when it was mapped.
    pub path: String,
    /// The name by which debug info is asked for; mostly equal to `name`. A `/` in it is replaced by the
    /// builder.
    pub debug_name: String,
    /// Where the debug info was found; mostly equal to `path`.
    pub debug_path: String,
    /// The debug id as Breakpad writes it: GUID and age in 33 or more upper-case hex digits; empty where the
    /// file has none.
    pub breakpad_id: String,
    /// The code id, which finds the binary: for ELF the whole build id in lower-case hex.
    pub code_id: Option<String>,
    /// The architecture as the Firefox Profiler names it, as `x86_64` or `arm64`.
    pub arch: Option<String>,
}

/// A source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its path, as the debug info or the runtime names it.
    pub filename: StringId,
}

/// The identity of a function: frames of the same function share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    /// Its name, demangled; for an address without a symbol something like `0x12ab`.
    pub name: StringId,
    /// The lib that its code is in. All frames of a func are in this lib, so frames of a lib and frames of none
    /// never share a func. The Firefox Profiler would rename both when it symbolicates one.
    pub lib: Option<LibId>,
    /// The file that the function is defined in.
    pub source: Option<SourceId>,
    /// The line that the function begins at, from 1.
    pub line: Option<u32>,
    /// The column that the function begins at, from 1.
    pub column: Option<u32>,
    /// Whose code it is.
    pub kind: FuncKind,
}

impl Func {
    /// A function of native code, of which only the name and the lib are known.
    pub fn new(name: StringId, lib: Option<LibId>) -> Self {
        Self { name, lib, source: None, line: None, column: None, kind: FuncKind::Native }
    }
}

/// Which of the front end's views of stacks a function belongs to: native code, JavaScript, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FuncKind {
    /// Native code, or code of another runtime.
    #[default]
    Native,
    /// Native code that is shown among JavaScript, too, as the functions that scripts call in a browser.
    RelevantForJavaScript,
    /// A function of JavaScript.
    JavaScript,
}

/// An entry of a lib's symbol table: the machine's function, into which others may be inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NativeSymbol {
    /// The lib whose symbol it is.
    pub lib: LibId,
    /// Its first byte's relative address.
    pub address: u32,
    /// Its size in bytes, where known.
    pub size: Option<u32>,
    /// Its name, demangled.
    pub name: StringId,
}

/// A position on a stack. Its lib is its function's ([`Profile::frame_lib`](crate::Profile::frame_lib)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The relative lookup address in the func's lib: the instruction pointer of a leaf, otherwise the return
    /// address - 1. `None` for labels and for code without a lib. What does not fit 31 bits is not written. A
    /// func that has frames with a written address and others is written as two.
    pub address: Option<u32>,
    /// 0 for the outermost function at this address; its inlined callees, children of it in the stack with
    /// the same address and native symbol, have 1, 2, ...
    pub inline_depth: u16,
    /// The kind of code; `None` inherits the category of the calling frame.
    pub category: Option<CategoryPair>,
    /// The function.
    pub func: FuncId,
    /// The symbol that holds the address, also for inlined frames.
    pub native_symbol: Option<NativeSymbolId>,
    /// The file that the line is in, where that is another than the function's: of code that the function includes.
    /// `None` where it is the function's ([`Profile::frame_source`](crate::Profile::frame_source)).
    pub source: Option<SourceId>,
    /// The line executed, from 1.
    pub line: Option<u32>,
    /// The column executed, from 1.
    pub column: Option<u32>,
}

impl Frame {
    /// A frame of `func` of which nothing else is known: a label.
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
