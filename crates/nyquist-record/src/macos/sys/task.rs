//! Tasks: the memory and the threads of a process.

use super::mach::{
    Name, SUCCESS, TASK_DYLD_ALL_IMAGE_INFO_64, TASK_DYLD_INFO, TaskDyldInfo, mach_task_self_,
    mach_vm_deallocate, task_for_pid, task_info, task_threads, words,
};
use super::port::Port;

/// The port of a process's task; `None` for a process that may not be sampled, and for one that has ended: the
/// status is `KERN_FAILURE` for both.
pub(crate) fn of_process(pid: u32) -> Option<Port> {
    let pid = i32::try_from(pid).unwrap_or(-1);
    let mut name: Name = 0;
    // SAFETY: `name` lives through the call, which takes a number and gives a send right that is now ours.
    let status = unsafe { task_for_pid(mach_task_self_, pid, &raw mut name) };
    Port::take_over(name).filter(|_| status == SUCCESS)
}

/// The threads of a task; `None` if it has ended, or has become another task by `exec`.
pub(crate) fn threads(task: &Port) -> Option<Vec<Port>> {
    let (mut list, mut count) = (std::ptr::null_mut::<Name>(), 0_u32);
    // SAFETY: both pointers live through the call. On success, it gives an array of `count` send rights in new
    // memory, and both are the caller's to release.
    let status = unsafe { task_threads(task.name(), &raw mut list, &raw mut count) };
    if status != SUCCESS {
        return None;
    }
    if list.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the call has just filled this array, which is of `count` names, aligned to a page, and not shared.
    let names = unsafe { std::slice::from_raw_parts(list, count as usize) };
    let ports = names.iter().filter_map(|name| Port::take_over(*name)).collect();
    let size = u64::from(count) * size_of::<Name>() as u64;
    // SAFETY: the array is memory that the kernel made for this caller, of this size, and is not used any more.
    unsafe { mach_vm_deallocate(mach_task_self_, list.addr() as u64, size) };
    Some(ports)
}

/// The address in a task's memory of the list of its images (`dyld_all_image_infos`), if the task has 64 bits.
pub(crate) fn image_list(task: &Port) -> Option<u64> {
    let mut info = TaskDyldInfo::default();
    let mut len = words::<TaskDyldInfo>();
    // SAFETY: both pointers live through the call. `info` has `len` words, of which the kernel writes no more.
    let status = unsafe { task_info(task.name(), TASK_DYLD_INFO, (&raw mut info).cast(), &raw mut len) };
    let is_known = status == SUCCESS && info.format == TASK_DYLD_ALL_IMAGE_INFO_64 && info.address != 0;
    is_known.then_some(info.address)
}
