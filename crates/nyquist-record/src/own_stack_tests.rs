//! A test of work on a stack of its own (`signals::on_own_stack`), which each system does in another way.

#[cfg(target_os = "linux")]
use crate::linux::signals::on_own_stack;
#[cfg(target_os = "macos")]
use crate::macos::signals::on_own_stack;
#[cfg(windows)]
use crate::windows::signals::on_own_stack;

#[test]
fn work_has_its_own_stack_and_may_panic() {
    assert_eq!(on_own_stack(1 << 20, || 7).unwrap(), 7);
    let caught = std::panic::catch_unwind(|| on_own_stack(1 << 20, || panic!("as it must")));
    assert!(caught.is_err());
}
