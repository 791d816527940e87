//! What of an event counts: the letters behind its name, as perf has them (perf-list(1), "EVENT MODIFIERS").

/// What of an event counts. By default everything that is permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of the kernel's attributes")]
pub struct Modifiers {
    /// Not what happens in user code (`exclude_user`).
    pub exclude_user: bool,
    /// Not what happens in the kernel (`exclude_kernel`).
    pub exclude_kernel: bool,
    /// Not what happens in a hypervisor (`exclude_hv`).
    pub exclude_hypervisor: bool,
    /// Not what happens outside of guests (`exclude_host`).
    pub exclude_host: bool,
    /// Not what happens in guests (`exclude_guest`).
    pub exclude_guest: bool,
    /// How near a sample's address must be to the instruction that caused it, from 0 to 3 (`precise_ip`).
    pub precise: u8,
    /// Whether the text says anything of user code, kernel and hypervisor.
    pub names_levels: bool,
}

/// The letters that are understood.
pub(super) const LETTERS: &str = "u, k, h, G, H, p, pp, ppp";

impl Modifiers {
    /// Reads letters. `Err` is the place of the first byte that is none, or one `p` too many.
    pub(super) fn parse(letters: &str) -> Result<Self, usize> {
        let has = |letter| letters.contains(letter);
        let levels = ['u', 'k', 'h'].into_iter().any(has);
        let worlds = ['G', 'H'].into_iter().any(has);
        let mut precise = 0;
        for (at, letter) in letters.char_indices() {
            match letter {
                'u' | 'k' | 'h' | 'G' | 'H' => {}
                'p' if precise < 3 => precise += 1,
                _ => return Err(at),
            }
        }
        Ok(Self {
            exclude_user: levels && !has('u'),
            exclude_kernel: levels && !has('k'),
            exclude_hypervisor: levels && !has('h'),
            exclude_host: worlds && !has('H'),
            exclude_guest: worlds && !has('G'),
            precise,
            names_levels: levels,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_what_counts() {
        let user = Modifiers::parse("u").unwrap();
        assert_eq!(
            [user.exclude_user, user.exclude_kernel, user.exclude_hypervisor, user.exclude_guest],
            [false, true, true, false]
        );
        let both = Modifiers::parse("ukpp").unwrap();
        assert_eq!((both.exclude_user, both.exclude_kernel, both.precise), (false, false, 2));
        let guest = Modifiers::parse("G").unwrap();
        assert_eq!((guest.exclude_host, guest.exclude_guest, guest.names_levels), (true, false, false));
        assert_eq!(Modifiers::parse(""), Ok(Modifiers::default()));
        assert_eq!(Modifiers::parse("ux"), Err(1));
        assert_eq!(Modifiers::parse("pppp"), Err(3));
    }
}
