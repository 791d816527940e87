//! Where the code of a profile is in the written recording. Libs are in mappings of their binaries, and all
//! other code is at made-up addresses.

use std::path::{Path, PathBuf};

use nyquist_object::elf::Architecture;
use nyquist_object::{Avma, BuildId, Elf, FileOffset, ModuleId};
use nyquist_perf::abi::misc;
use nyquist_perf::file::FileBuildId;
use nyquist_perf::{MappedIdentity, Mmap};
use nyquist_profile::{Frame, FuncId, Lib, LibId, Profile, well_known};
use nyquist_symbols::ModuleRequest;
use rustc_hash::FxHashMap;

use super::options::WriteOptions;
use super::stand_in::{self, SLOT, StandIn, TEXT};

/// The address of the first lib. Each lib has its own addresses, which are the same in all processes.
const FIRST_BASE: u64 = 0x1000_0000;
/// The alignment of libs, which is that of large pages.
const BASE_ALIGNMENT: u64 = 0x20_0000;
/// The address of functions of the kernel. It is in the range of kernel modules, and perf finds the names in
/// a stand-in for such a module. For the kernel's own addresses, perf would use the names of the running
/// kernel.
const KERNEL_CODE: u64 = 0xffff_ffff_c100_0000;
/// The name of that stand-in. Perf recognizes a module by the suffix `.ko`, and names it `[kernel]`.
const KERNEL_FILE: &str = "kernel.ko";
/// The most bytes of a build id that fit into a mapping's record.
const MAX_ID_LEN: usize = 20;
const PAGE: u64 = 0x1000;

/// The places of all code.
#[derive(Debug)]
pub(super) struct Code {
    images: Vec<Image>,
    frames: Vec<FramePlace>,
    kernel: Vec<KernelSymbol>,
    kernel_architecture: Option<Architecture>,
    /// The path of the kernel's stand-in.
    kernel_path: String,
}

/// The place of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramePlace {
    /// The address of an innermost frame; a caller's return address is one more.
    pub(super) address: Avma,
    /// The image that is mapped there; `None` for the kernel.
    pub(super) image: Option<ImageIndex>,
    /// Whether the reader of the address finds the functions that are inlined there itself.
    pub(super) has_inlines: bool,
}

/// The index of an image in [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ImageIndex(usize);

/// A file that processes have mapped.
#[derive(Debug)]
struct Image {
    path: String,
    build_id: Option<BuildId>,
    base: Avma,
    ranges: Vec<Range>,
    /// The functions of the image, if it is a stand-in.
    functions: Option<Functions>,
}

/// A range of an image that is mapped as code.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// From the image's base.
    start: u64,
    len: u64,
    offset: FileOffset,
}

#[derive(Debug, Default)]
struct Functions {
    file_name: String,
    names: Vec<String>,
    architecture: Option<Architecture>,
}

/// A function of the kernel.
#[derive(Debug)]
pub(super) struct KernelSymbol {
    pub(super) name: String,
    pub(super) address: Avma,
    pub(super) len: u32,
}

impl Code {
    /// Looks for the binaries of all libs, and gives every frame its place.
    pub(super) fn of(profile: &Profile, options: WriteOptions<'_>) -> Self {
        let mut builder = Builder {
            profile,
            options,
            code: Self::empty(),
            libs: Vec::new(),
            slots: FxHashMap::default(),
            no_lib: None,
        };
        let named = named_libs(profile);
        builder.libs = profile
            .libs()
            .iter()
            .zip(&named)
            .map(|(lib, named)| builder.code.lib(lib, *named, options))
            .collect();
        for frame in profile.frames() {
            let place = builder.place(frame);
            builder.code.frames.push(place);
        }
        builder.code.lay_out(options.stand_ins);
        builder.code
    }

    fn empty() -> Self {
        Self {
            images: Vec::new(),
            frames: Vec::new(),
            kernel: Vec::new(),
            kernel_architecture: None,
            kernel_path: String::new(),
        }
    }

    /// The place of a frame, by its row in the profile's table.
    pub(super) fn frame(&self, row: usize) -> Option<FramePlace> {
        let place = *self.frames.get(row)?;
        let base = place.image.and_then(|image| self.images.get(image.0)).map_or(0, |image| image.base.0);
        Some(FramePlace { address: Avma(base.wrapping_add(place.address.0)), ..place })
    }

    pub(super) fn has_kernel(&self) -> bool {
        !self.kernel.is_empty()
    }

    pub(super) fn kernel_symbols(&self) -> &[KernelSymbol] {
        &self.kernel
    }

    /// The mappings of a process that has frames in these images.
    pub(super) fn mappings(&self, images: &[ImageIndex], pid: u32) -> impl Iterator<Item = Mmap<'_>> {
        let images = images.iter().filter_map(|image| self.images.get(image.0));
        let mappings: Vec<_> = images
            .flat_map(|image| image.ranges.iter().map(move |range| image.mapping(*range, pid)))
            .collect();
        mappings.into_iter()
    }

    /// The mappings of the kernel. One is of its image, which is empty, because without it perf warns that it
    /// cannot find the kernel. The other is of the module with its functions.
    pub(super) fn kernel_mappings(&self) -> [Mmap<'_>; 2] {
        const TEXT: u64 = 0xffff_ffff_8100_0000;
        const KERNEL_PID: u32 = u32::MAX;
        let mapping = |address, len, page_offset, path| Mmap {
            pid: KERNEL_PID,
            tid: 0,
            address,
            len,
            page_offset,
            identity: MappedIdentity::None,
            protection: Some(1 | 4),
            flags: Some(2),
            path,
            data: false,
        };
        // The address of a module is that of its section `.text`.
        let len = (SLOT * self.kernel.len() as u64).next_multiple_of(PAGE);
        [
            mapping(TEXT, 0x100_0000, TEXT, b"[kernel.kallsyms]_text"),
            mapping(KERNEL_CODE, len, 0, self.kernel_path.as_bytes()),
        ]
    }

    /// The build ids of all mapped files that have one.
    pub(super) fn build_ids(&self) -> Vec<FileBuildId> {
        let entry = |image: &Image| {
            let build_id = image.build_id.as_ref()?.as_bytes().to_vec();
            Some(FileBuildId { misc: misc::USER, pid: -1, build_id, path: image.path.clone() })
        };
        self.images.iter().filter(|image| !image.ranges.is_empty()).filter_map(entry).collect()
    }

    pub(super) fn into_stand_ins(self) -> Vec<StandIn> {
        let kernel = (!self.kernel.is_empty()).then(|| Functions {
            file_name: KERNEL_FILE.to_owned(),
            names: self.kernel.into_iter().map(|symbol| symbol.name).collect(),
            architecture: self.kernel_architecture,
        });
        let functions = self.images.into_iter().filter_map(|image| image.functions).chain(kernel);
        let file = |functions: Functions| StandIn {
            bytes: stand_in::file(&functions.names, functions.architecture),
            file_name: functions.file_name,
        };
        functions.map(file).collect()
    }

    /// The image of a lib: the binary with its identity. If that is not found, it is a stand-in if any names
    /// are known, otherwise only the path.
    fn lib(&mut self, lib: &Lib, has_names: bool, options: WriteOptions<'_>) -> ImageIndex {
        let image = found_image(lib, options).unwrap_or_else(|| {
            let functions = has_names.then(|| Functions {
                file_name: file_name(&lib.name),
                names: Vec::new(),
                architecture: lib.arch.as_deref().and_then(architecture),
            });
            Image {
                path: lib.path.clone(),
                build_id: build_id(lib),
                base: Avma(0),
                ranges: Vec::new(),
                functions,
            }
        });
        self.add(image)
    }

    fn add(&mut self, image: Image) -> ImageIndex {
        self.images.push(image);
        ImageIndex(self.images.len() - 1)
    }

    /// Gives every image its addresses, and stand-ins their names and build ids.
    fn lay_out(&mut self, folder: &Path) {
        // Files that were not found are mapped up to their last frame.
        for place in &self.frames {
            let image = place.image.and_then(|image| self.images.get_mut(image.0));
            if let Some(Image { functions: None, ranges, .. }) = image
                && !place.has_inlines
            {
                let len = (place.address.0 + 2).next_multiple_of(PAGE);
                match ranges.first_mut() {
                    Some(range) => range.len = range.len.max(len),
                    None => ranges.push(Range { start: 0, len, offset: FileOffset(0) }),
                }
            }
        }
        self.kernel_path = folder.join(KERNEL_FILE).to_string_lossy().into_owned();
        let (mut next, mut taken) = (FIRST_BASE, vec![KERNEL_FILE.to_owned()]);
        for image in &mut self.images {
            image.name_stand_in(folder, &mut taken);
            image.base = Avma(next);
            let len = image.ranges.iter().map(|range| range.start + range.len).max().unwrap_or(0);
            next += len.next_multiple_of(BASE_ALIGNMENT);
        }
    }
}

impl Image {
    fn mapping(&self, range: Range, pid: u32) -> Mmap<'_> {
        /// `PROT_READ | PROT_EXEC` and `MAP_PRIVATE` of mmap(2).
        const CODE: (u32, u32) = (1 | 4, 2);
        let build_id = self.build_id.as_ref().map(BuildId::as_bytes);
        Mmap {
            pid,
            tid: pid,
            address: self.base.0.wrapping_add(range.start),
            len: range.len,
            page_offset: range.offset.0,
            identity: build_id.map_or(MappedIdentity::None, MappedIdentity::BuildId),
            protection: Some(CODE.0),
            flags: Some(CODE.1),
            path: self.path.as_bytes(),
            data: false,
        }
    }

    /// Gives a stand-in a file name that is not among `taken`, its path, its build id and its range.
    fn name_stand_in(&mut self, folder: &Path, taken: &mut Vec<String>) {
        self.functions.take_if(|functions| functions.names.is_empty());
        let Some(functions) = &mut self.functions else { return };
        let name = functions.file_name.clone();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = [name.clone()].into_iter().chain(numbered).find(|name| !taken.contains(name));
        functions.file_name = free.unwrap_or(name);
        taken.push(functions.file_name.clone());
        self.path = folder.join(&functions.file_name).to_string_lossy().into_owned();
        self.build_id = BuildId::new(&stand_in::build_id(&functions.names));
        let len = stand_in::memory_len(functions.names.len());
        self.ranges = vec![Range { start: 0, len, offset: FileOffset(0) }];
    }

    fn holds(&self, address: u64) -> bool {
        self.ranges.iter().any(|range| address.checked_sub(range.start).is_some_and(|into| into < range.len))
    }
}

/// Assigns places to frames, one after the other.
struct Builder<'a> {
    profile: &'a Profile,
    options: WriteOptions<'a>,
    code: Code,
    /// The image of each lib.
    libs: Vec<ImageIndex>,
    /// The made-up addresses of functions. The flag is set for functions of the kernel.
    slots: FxHashMap<(FuncId, bool), Avma>,
    /// The stand-in for all functions that are in no lib.
    no_lib: Option<ImageIndex>,
}

impl Builder<'_> {
    fn place(&mut self, frame: &Frame) -> FramePlace {
        let lib = self.profile.func(frame.func).lib;
        let image = lib.and_then(|lib| self.libs.get(lib.index()).copied());
        if lib.is_some() && self.is_kernel(frame) {
            return FramePlace { address: self.kernel_slot(frame.func), image: None, has_inlines: false };
        }
        let known = image.and_then(|image| Some((image, self.code.images.get(image.0)?)));
        if let (Some((index, image)), Some(address)) = (known, frame.address.map(u64::from))
            && image.functions.is_none()
            && (image.ranges.is_empty() || image.holds(address))
        {
            let has_inlines = !image.ranges.is_empty();
            return FramePlace { address: Avma(address), image: Some(index), has_inlines };
        }
        let stand_in = known.filter(|(_, image)| image.functions.is_some()).map(|(index, _)| index);
        let stand_in = stand_in.unwrap_or_else(|| self.no_lib());
        FramePlace { address: self.slot(frame.func, stand_in), image: Some(stand_in), has_inlines: false }
    }

    fn is_kernel(&self, frame: &Frame) -> bool {
        let category = frame.category.map(|pair| self.profile.category(pair.category));
        category.is_some_and(|category| category.name == well_known::KERNEL)
    }

    fn kernel_slot(&mut self, func: FuncId) -> Avma {
        let next = Avma(KERNEL_CODE + SLOT * self.code.kernel.len() as u64);
        let address = *self.slots.entry((func, true)).or_insert(next);
        if address == next {
            let name = self.profile.func_name(func).to_owned();
            self.code.kernel.push(KernelSymbol { name, address, len: SLOT as u32 });
            let arch = self.profile.func(func).lib.and_then(|lib| self.profile.lib(lib).arch.as_deref());
            self.code.kernel_architecture = self.code.kernel_architecture.or(arch.and_then(architecture));
        }
        address
    }

    fn no_lib(&mut self) -> ImageIndex {
        *self.no_lib.get_or_insert_with(|| {
            let functions = Functions { file_name: "functions".to_owned(), ..Functions::default() };
            let path = self.options.stand_ins.to_string_lossy().into_owned();
            let (base, ranges) = (Avma(0), Vec::new());
            self.code.add(Image { path, build_id: None, base, ranges, functions: Some(functions) })
        })
    }

    fn slot(&mut self, func: FuncId, stand_in: ImageIndex) -> Avma {
        if let Some(address) = self.slots.get(&(func, false)) {
            return *address;
        }
        let image = self.code.images.get_mut(stand_in.0);
        let Some(functions) = image.and_then(|image| image.functions.as_mut()) else { return Avma(TEXT) };
        let address = Avma(TEXT + SLOT * functions.names.len() as u64);
        functions.names.push(self.profile.func_name(func).to_owned());
        self.slots.insert((func, false), address);
        address
    }
}

/// The libs that have a function with a name that is not an address.
fn named_libs(profile: &Profile) -> Vec<bool> {
    let mut named = vec![false; profile.libs().len()];
    for func in profile.funcs() {
        if let Some(named) = func.lib.and_then(|lib: LibId| named.get_mut(lib.index())) {
            *named |= !profile.string(func.name).starts_with("0x");
        }
    }
    named
}

fn build_id(lib: &Lib) -> Option<BuildId> {
    let id = lib.code_id.as_deref().and_then(BuildId::from_hex);
    id.filter(|id| id.as_bytes().len() <= MAX_ID_LEN)
}

/// The binary that has the lib's build id, and its ranges of code.
fn found_image(lib: &Lib, options: WriteOptions<'_>) -> Option<Image> {
    let build_id = build_id(lib)?;
    let id = Some(ModuleId::BuildId(build_id.clone()));
    let request = ModuleRequest { path: PathBuf::from(&lib.path), id, ..ModuleRequest::default() };
    let file = options.finder.find_binary(&request)?;
    let elf = Elf::open(file.source).ok()?;
    let base = elf.image_base();
    let code = elf.segments().iter().filter(|segment| segment.executable);
    let range = |segment: &nyquist_object::elf::ElfSegment| {
        let into_page = segment.address.0 % PAGE;
        let start = segment.address.0.checked_sub(into_page)?.checked_sub(base.0)?;
        // Addresses in profiles have 32 bits.
        let len = segment.memory_size.checked_add(into_page).filter(|len| u32::try_from(*len).is_ok())?;
        let offset = FileOffset(segment.offset.0.checked_sub(into_page)?);
        u32::try_from(start).ok()?;
        Some(Range { start, len: len.next_multiple_of(PAGE), offset })
    };
    let ranges: Vec<_> = code.filter_map(range).collect();
    let path = std::path::absolute(&file.path).unwrap_or(file.path).to_string_lossy().into_owned();
    let image = Image { path, build_id: Some(build_id), base: Avma(0), ranges, functions: None };
    (!image.ranges.is_empty()).then_some(image)
}

/// A lib's name as a file name.
fn file_name(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._+-".contains(*letter);
    let plain: String = name.chars().map(|letter| if is_plain(&letter) { letter } else { '_' }).collect();
    match plain.trim_matches(['.', '_']) {
        "" => "lib".to_owned(),
        plain => plain.chars().take(200).collect(),
    }
}

fn architecture(name: &str) -> Option<Architecture> {
    match name {
        "x86_64" | "x86_64h" => Some(Architecture::X86_64),
        "arm64" | "arm64e" => Some(Architecture::Aarch64),
        "x86" => Some(Architecture::X86),
        _ => None,
    }
}
