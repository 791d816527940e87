//! Restrictions of what an event counts: the letters after its name, as in perf (perf-list(1), "EVENT
//! MODIFIERS").

/// Restrictions of what an event counts. By default, it counts everything that is permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of the kernel's attributes")]
pub struct Modifiers {
    /// Excludes user code (`exclude_user`).
    pub exclude_user: bool,
    /// Excludes the kernel (`exclude_kernel`).
    pub exclude_kernel: bool,
    /// Excludes a hypervisor (`exclude_hv`).
    pub exclude_hypervisor: bool,
    /// Excludes everything outside of guests (`exclude_host`).
    pub exclude_host: bool,
    /// Excludes guests (`exclude_guest`).
    pub exclude_guest: bool,
    /// How close a sample's address must be to the instruction that caused it, from 0 to 3 (`precise_ip`).
    pub precise: u8,
    /// Whether the text mentions user code, kernel or hypervisor.
    pub names_levels: bool,
}

/// The supported letters.
pub(super) const LETTERS: &str = "u, k, h, G, H, p, pp, ppp";

impl Modifiers {
    /// Parses letters. `Err` is the position of the first unknown byte, or of the first superfluous `p`.
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
