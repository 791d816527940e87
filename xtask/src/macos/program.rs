//! What a program of macOS needs to start, and what profilers need of it.

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use object::Endianness;
use object::macho::{
    BuildVersionCommand, CPU_TYPE_ARM64, CpuType, LC_BUILD_VERSION, LC_CODE_SIGNATURE, LC_UUID,
    LC_VERSION_MIN_MACOSX, LinkeditDataCommand, MH_EXECUTE, MH_PIE, MachHeader64, VersionMinCommand,
};
use object::read::macho::{LoadCommandData, MachHeader as _, Section as _, Segment as _};

use super::signature;

/// Where each macOS has libraries of its own.
const SYSTEM: [&str; 2] = ["/usr/lib/", "/System/Library/Frameworks/"];

/// The newest version that programs may ask for: 11.0, the first for Apple's processors.
const VERSION: u32 = 11 << 16;

/// The signature of a program that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// It is of nobody ("ad hoc"), and fits all pages.
    Valid,
    /// There is none. Macs with Intel's processors start such a program, too.
    NotDemanded,
}

impl Signature {
    /// The signature of a program for a processor. Macs with Apple's processors start nothing without one.
    fn of(is_signed: bool, processor: CpuType) -> Result<Self> {
        ensure!(is_signed || processor != CPU_TYPE_ARM64, "it has no signature");
        Ok(if is_signed { Self::Valid } else { Self::NotDemanded })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "a valid ad-hoc signature",
            Self::NotDemanded => "no signature, which Intel's processors do not demand",
        })
    }
}

/// Fails unless a program needs only libraries of the system and no new version of it, can be at any address, has
/// an identity and unwind information, and a signature if its processor demands one.
pub(crate) fn expect_startable(program: &[u8]) -> Result<Signature> {
    let header = MachHeader64::<Endianness>::parse(program, 0).context("it is not a 64-bit Mach-O file")?;
    let endian = header.endian()?;
    ensure!(header.filetype(endian) == MH_EXECUTE, "it is not a program");
    ensure!(header.flags(endian).contains(MH_PIE), "it needs one certain address");
    let (mut uuid, mut unwind_info, mut signed, mut version) = (false, false, false, false);
    let mut commands = header.load_commands(endian, program, 0)?;
    while let Some(command) = commands.next()? {
        if command.cmd() == LC_UUID {
            uuid = true;
        } else if command.cmd() == LC_CODE_SIGNATURE {
            let place: &LinkeditDataCommand<Endianness> = command.data()?;
            let at = (place.dataoff.get(endian) as usize, place.datasize.get(endian) as usize);
            signature::expect_valid(program, at).context("its signature is wrong")?;
            signed = true;
        } else if let Some(oldest) = oldest_system(endian, command)? {
            ensure!(oldest <= VERSION, "it needs macOS {}.{}", oldest >> 16, oldest >> 8 & 0xff);
            version = true;
        }
        expect_system_library(endian, command)?;
        if let Some((segment, sections)) = command.segment_64()? {
            let sections = segment.sections(endian, sections)?;
            let mut found = sections.iter().filter(|it| it.name() == b"__unwind_info");
            unwind_info |= found.any(|section| section.size.get(endian) > 0);
        }
    }
    ensure!(version, "it does not say which system it needs");
    for (is_there, what) in [(uuid, "identity"), (unwind_info, "unwind information")] {
        ensure!(is_there, "it has no {what}");
    }
    Signature::of(signed, header.cputype(endian))
}

/// The oldest macOS that a program asks for, if a command says that. Linkers use the former command for systems that
/// do not know the other one (before 10.14).
fn oldest_system(endian: Endianness, command: LoadCommandData<'_, Endianness>) -> Result<Option<u32>> {
    Ok(if command.cmd() == LC_BUILD_VERSION {
        let version: &BuildVersionCommand<Endianness> = command.data()?;
        Some(version.minos.get(endian).0)
    } else if command.cmd() == LC_VERSION_MIN_MACOSX {
        let version: &VersionMinCommand<Endianness> = command.data()?;
        Some(version.version.get(endian).0)
    } else {
        None
    })
}

/// Fails if a command loads a library that not every macOS has.
fn expect_system_library(endian: Endianness, command: LoadCommandData<'_, Endianness>) -> Result<()> {
    let Some(library) = command.dylib()? else { return Ok(()) };
    let path = String::from_utf8_lossy(command.string(endian, library.dylib.name)?);
    if SYSTEM.iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    bail!("it needs {path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::macho::CPU_TYPE_X86_64;

    #[test]
    fn a_program_of_linux_is_none_of_macos() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(expect_startable(&own).unwrap_err().to_string(), "it is not a 64-bit Mach-O file");
    }

    #[test]
    fn only_apples_processors_demand_a_signature() {
        let of =
            |is_signed, processor| Signature::of(is_signed, processor).map_err(|error| error.to_string());
        for processor in [CPU_TYPE_ARM64, CPU_TYPE_X86_64] {
            assert_eq!(of(true, processor), Ok(Signature::Valid));
        }
        assert_eq!(of(false, CPU_TYPE_ARM64), Err("it has no signature".to_owned()));
        assert_eq!(of(false, CPU_TYPE_X86_64), Ok(Signature::NotDemanded));
    }

    /// A program for Intel's processors with one command.
    fn program(command: [u32; 4]) -> Vec<u8> {
        let pie = 0x20_0000;
        let header = [0xfeed_facf, 0x100_0007, 3, 2, 1, 16, pie, 0];
        header.into_iter().chain(command).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn a_program_for_new_systems_is_refused() {
        let why = |command| expect_startable(&program(command)).unwrap_err().to_string();
        assert_eq!(why([0x24, 16, 12 << 16 | 3 << 8, 0]), "it needs macOS 12.3");
        assert_eq!(why([0x24, 16, 10 << 16 | 12 << 8, 0]), "it has no identity");
        assert_eq!(why([0x1_0000, 16, 0, 0]), "it does not say which system it needs");
    }
}
