//! Demangles names of the Itanium C++ ABI (<https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>), with parameter
//! packs.

mod encoding;
mod expressions;
mod names;
mod operators;
mod packs;
mod parser;
mod print;
mod print_names;
#[cfg(test)]
mod tests;
mod tree;
mod types;

/// Demangles a name; `None` if it is no such name, nests too deeply, or is too long.
pub(super) fn demangle(name: &str) -> Option<String> {
    let mut parser = parser::Parser::new(name);
    let symbol = parser.symbol()?;
    print::print(&parser.tree, symbol)
}
