//! Which of the machine's processes descend from the recorded ones.

use std::collections::HashMap;

use super::system::ListedProcess;

/// The most processes that are remembered.
const MAX_MEMBERS: usize = 1 << 16;

/// The recorded processes and their descendants, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ProcessFamily {
    members: HashMap<u32, FamilyMember>,
}

#[derive(Clone, Copy, Debug)]
struct FamilyMember {
    /// When it was started; `None` until it was listed.
    began: Option<u64>,
    lives: bool,
}

impl ProcessFamily {
    /// The family of these processes.
    pub(crate) fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        let member = FamilyMember { began: None, lives: true };
        Self { members: pids.into_iter().map(|pid| (pid, member)).collect() }
    }

    /// Adds the new descendants among the listed processes, and returns them, parents first. Processes that
    /// are no longer listed have ended; their children still belong to the family.
    ///
    /// `left_out` is this program, which is never a member.
    pub(crate) fn update(&mut self, listed: &[ListedProcess], left_out: u32) -> Vec<ListedProcess> {
        self.note_ends(listed);
        let mut new = Vec::new();
        loop {
            let before = new.len();
            for process in listed {
                let is_new = process.pid != left_out && !self.has(process) && self.is_parent_of(process);
                if is_new && self.members.len() < MAX_MEMBERS {
                    self.members
                        .insert(process.pid, FamilyMember { began: Some(process.began), lives: true });
                    new.push(*process);
                }
            }
            if new.len() == before {
                return new;
            }
        }
    }

    /// Whether a listed process is a member. Another process with the number of one that has ended is not.
    pub(crate) fn has(&self, process: &ListedProcess) -> bool {
        self.members.get(&process.pid).is_some_and(|member| member.is(process))
    }

    fn is_parent_of(&self, process: &ListedProcess) -> bool {
        // A parent is older than its child. If it is younger, the real parent has ended, and another process
        // has its number.
        let member = self.members.get(&process.parent).filter(|_| process.parent != process.pid);
        member.is_some_and(|member| member.began.is_some_and(|began| began <= process.began))
    }

    fn note_ends(&mut self, listed: &[ListedProcess]) {
        let live: HashMap<u32, &ListedProcess> = listed.iter().map(|it| (it.pid, it)).collect();
        for (pid, member) in &mut self.members {
            match live.get(pid) {
                Some(process) if member.began.is_none() => member.began = Some(process.began),
                Some(process) if member.is(process) => {}
                _ => member.lives = false,
            }
        }
    }
}

impl FamilyMember {
    fn is(&self, process: &ListedProcess) -> bool {
        self.lives && self.began.is_none_or(|began| began == process.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(pid: u32, parent: u32, began: u64) -> ListedProcess {
        ListedProcess { pid, parent, began }
    }

    fn update(family: &mut ProcessFamily, processes: &[ListedProcess]) -> Vec<u32> {
        family.update(processes, 99).into_iter().map(|process| process.pid).collect()
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let mut family = ProcessFamily::of([10]);
        let all = [listed(12, 11, 7), listed(11, 10, 6), listed(20, 1, 5), listed(10, 99, 5)];
        assert_eq!(update(&mut family, &all), [11, 12]);
        assert_eq!(update(&mut family, &all), [0; 0]);
        assert!(family.has(&all[0]) && !family.has(&all[2]));
    }

    #[test]
    fn children_of_ended_processes_belong_to_it() {
        let mut family = ProcessFamily::of([10]);
        update(&mut family, &[listed(10, 1, 5), listed(11, 10, 6)]);
        assert_eq!(update(&mut family, &[listed(12, 11, 8)]), [12]);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut family = ProcessFamily::of([10]);
        update(&mut family, &[listed(10, 1, 5), listed(11, 10, 6)]);
        let other = listed(11, 1, 9);
        assert_eq!(update(&mut family, &[listed(10, 1, 5), other]), [0; 0]);
        assert!(!family.has(&other));
        // Its number is that of an older process's parent that has ended.
        assert_eq!(update(&mut family, &[listed(13, 10, 3)]), [0; 0]);
    }

    #[test]
    fn this_program_is_no_member_even_as_a_child() {
        let mut family = ProcessFamily::of([10]);
        let all = [listed(10, 1, 5), listed(99, 10, 6), listed(100, 99, 7)];
        assert_eq!(update(&mut family, &all), [0; 0]);
    }
}
