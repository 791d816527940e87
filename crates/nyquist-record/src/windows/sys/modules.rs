//! The images that a process has loaded.

use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::{mem, ptr};

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumProcessModulesEx, K32GetModuleFileNameExW, K32GetModuleInformation, LIST_MODULES_ALL, MODULEINFO,
};

use super::text;

/// The most modules of a process that are listed.
const MAX_MODULES: usize = 1 << 12;
/// The longest path, in UTF-16 units, of which more is not read. A process can state any path.
const MAX_PATH_LEN: usize = 1 << 12;

/// The base addresses of the images of a process; empty if it has not begun or has ended.
pub(crate) fn bases(process: &OwnedHandle) -> Vec<u64> {
    let mut modules: Vec<HMODULE> = vec![ptr::null_mut(); 256];
    loop {
        let room = modules.len() * size_of::<HMODULE>();
        let mut needed = 0;
        // SAFETY: the array has `room` bytes, and both pointers live through the call.
        let listed = unsafe {
            K32EnumProcessModulesEx(
                process.as_raw_handle(),
                modules.as_mut_ptr(),
                room as u32,
                &raw mut needed,
                LIST_MODULES_ALL,
            )
        };
        let count = needed as usize / size_of::<HMODULE>();
        if listed == 0 {
            return Vec::new();
        }
        if count <= modules.len() || modules.len() >= MAX_MODULES {
            let known = modules.iter().take(count);
            return known.map(|module| module.addr() as u64).collect();
        }
        modules.resize(count.min(MAX_MODULES), ptr::null_mut());
    }
}

/// The size of an image in memory in bytes.
pub(crate) fn size(process: &OwnedHandle, base: u64) -> Option<u32> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut information: MODULEINFO = unsafe { mem::zeroed() };
    // SAFETY: the system checks the base address; `information` lives through the call and has that size.
    let found = unsafe {
        K32GetModuleInformation(
            process.as_raw_handle(),
            ptr::without_provenance_mut(base as usize),
            &raw mut information,
            size_of::<MODULEINFO>() as u32,
        )
    };
    (found != 0 && information.SizeOfImage != 0).then_some(information.SizeOfImage)
}

/// The path of the file of an image.
pub(crate) fn path(process: &OwnedHandle, base: u64) -> Option<String> {
    let mut units = vec![0; MAX_PATH_LEN];
    // SAFETY: the system checks the base address; `units` has that many units and lives through the call.
    let len = unsafe {
        K32GetModuleFileNameExW(
            process.as_raw_handle(),
            ptr::without_provenance_mut(base as usize),
            units.as_mut_ptr(),
            units.len() as u32,
        )
    };
    let path = text(units.get(..len as usize)?);
    (!path.is_empty()).then_some(path)
}
