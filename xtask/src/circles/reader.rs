//! The modules of a crate and the paths in them, without those for tests, on all systems.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, Token, UseTree, Visibility};

/// The segments of a path.
pub(super) type Names = Vec<String>;

/// What modules with one path have on all systems.
#[derive(Default)]
pub(super) struct Module {
    pub(super) files: BTreeSet<PathBuf>,
    /// What `use` brings into it, by name, as written.
    pub(super) imports: BTreeMap<String, BTreeSet<Names>>,
}

/// Where the text that is read is.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) module: Names,
    pub(super) file: PathBuf,
    /// The folder with the files of its modules.
    pub(super) folder: PathBuf,
}

/// A path as written.
pub(super) struct Reference {
    pub(super) place: Place,
    pub(super) path: Names,
    pub(super) is_reexport: bool,
}

/// What the files of a crate contain.
pub(super) struct Sources<'a> {
    pub(super) read: &'a dyn Fn(&Path) -> Option<String>,
    pub(super) place: Place,
    pub(super) modules: BTreeMap<Names, Module>,
    pub(super) references: Vec<Reference>,
    pub(super) faults: Vec<String>,
}

impl<'a> Sources<'a> {
    /// Reads the files of a crate; `root` is its `lib.rs` or `main.rs`.
    pub(super) fn of(root: &str, read: &'a dyn Fn(&Path) -> Option<String>) -> Self {
        let mut sources = Self {
            read,
            place: Place::default(),
            modules: BTreeMap::new(),
            references: Vec::new(),
            faults: Vec::new(),
        };
        sources.load(&[PathBuf::from(root)]);
        sources
    }
}

impl Sources<'_> {
    /// Reads the module at the current place from the first of the files that exists.
    fn load(&mut self, files: &[PathBuf]) {
        let Some((file, text)) = files.iter().find_map(|file| Some((file, (self.read)(file)?))) else {
            self.faults.push(format!("none of {files:?} can be read"));
            return;
        };
        self.place.file.clone_from(file);
        match syn::parse_file(&text) {
            Ok(tree) if is_test(&tree.attrs) => {}
            Ok(tree) => self.enter(&tree.items),
            Err(error) => self.faults.push(format!("{} is no Rust: {error}", file.display())),
        }
    }

    /// Reads the items of the module at the current place.
    fn enter(&mut self, items: &[Item]) {
        let module = self.modules.entry(self.place.module.clone()).or_default();
        module.files.insert(self.place.file.clone());
        for item in items {
            self.visit_item(item);
        }
    }

    /// Notes a path. A bare name is noted, too, because a module uses what it re-exports by it.
    fn refer(&mut self, path: Names, is_reexport: bool) {
        let names_module_alone = path == ["self"] || path == ["super"];
        if !path.is_empty() && !names_module_alone {
            self.references.push(Reference { place: self.place.clone(), path, is_reexport });
        }
    }

    /// Takes the names of a `use` apart.
    fn import(&mut self, tree: &UseTree, mut path: Names, is_reexport: bool) {
        let (ident, name) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.unraw().to_string());
                return self.import(&tree.tree, path, is_reexport);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path.clone(), is_reexport));
            }
            UseTree::Glob(_) => {
                path.push("*".to_owned());
                return self.refer(path, is_reexport);
            }
            UseTree::Name(tree) => (&tree.ident, &tree.ident),
            UseTree::Rename(tree) => (&tree.ident, &tree.rename),
        };
        let is_self = ident == "self" && !path.is_empty();
        path.extend((!is_self).then(|| ident.unraw().to_string()));
        let name = if name == "self" { path.last().cloned() } else { Some(name.unraw().to_string()) };
        let module = self.modules.entry(self.place.module.clone()).or_default();
        module.imports.entry(name.unwrap_or_default()).or_default().insert(path.clone());
        self.refer(path, is_reexport);
    }

    /// Finds the paths in a macro's tokens.
    fn scan(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut dots) = (Names::new(), 0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.refer_scanned(std::mem::take(&mut path), colons);
                    }
                    // A name after one dot is a field or a method.
                    if dots != 1 {
                        path.push(ident.unraw().to_string());
                    }
                    (colons, dots) = (0, 0);
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                other => {
                    self.refer_scanned(std::mem::take(&mut path), colons);
                    let is_dot = matches!(&other, TokenTree::Punct(sign) if sign.as_char() == '.');
                    (colons, dots) = (0, if is_dot { dots + 1 } else { 0 });
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.refer_scanned(path, colons);
    }

    /// Notes a path in a macro's tokens. A bare name before one colon is a field or a variable.
    fn refer_scanned(&mut self, path: Names, colons: usize) {
        if path.len() > 1 || colons != 1 {
            self.refer(path, false);
        }
    }
}

impl<'ast> Visit<'ast> for Sources<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if is_test(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let outer = self.place.clone();
        let name = item.ident.unraw().to_string();
        self.place.folder.push(&name);
        self.place.module.push(name);
        let folder = &self.place.folder;
        match (&item.content, path_attribute(&item.attrs)) {
            (Some((_, items)), _) => self.enter(items),
            (None, None) => self.load(&[folder.with_extension("rs"), folder.join("mod.rs")]),
            (None, Some(path)) => {
                let file = outer.file.with_file_name(path);
                self.place.folder = file.parent().unwrap_or(Path::new("")).to_owned();
                self.load(&[file]);
            }
        }
        self.place = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Names::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.refer(
                path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect(),
                false,
            );
        }
        visit::visit_path(self, path);
    }

    /// In a pattern, a bare name in capitals is a constant or a unit struct; another one is a new variable.
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = pattern.ident.unraw().to_string();
        if name.starts_with(char::is_uppercase) {
            self.refer(vec![name], false);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.scan(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    /// The path in `pub(in path)` needs nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is built for tests alone.
fn is_test(attributes: &[Attribute]) -> bool {
    fn needs_test(condition: &Meta) -> bool {
        let parts = |list: &syn::MetaList| {
            list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default()
        };
        match condition {
            Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
            other => other.path().is_ident("test"),
        }
    }
    let mut conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.any(|attribute| attribute.parse_args().is_ok_and(|condition| needs_test(&condition)))
}

/// The file that `#[path = "..."]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &attribute.meta.require_name_value().ok()?.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}
