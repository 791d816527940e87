//! The volumes behind drive letters, by what the system says of each letter.

use nyquist_etw::kernel::Volume;

/// The volume of a drive letter that leads there (`QueryDosDevice`). Letters of folders (`subst`) lead to other
/// paths, and those of shares to paths of other machines: no image has such a path.
pub(crate) fn volume(letter: char, target: &str) -> Option<Volume> {
    let is_device = target.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(r"\Device\"));
    let is_volume = is_device && !target.contains(';');
    let device = format!(r"{}\", target.trim_end_matches('\\'));
    is_volume.then(|| Volume { device, drive: format!(r"{letter}:\") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_volumes_are_recognized() {
        let found = volume('D', r"\Device\HarddiskVolume4");
        let expected = Volume { device: r"\Device\HarddiskVolume4\".into(), drive: r"D:\".into() };
        assert_eq!(found, Some(expected));
        for other in [r"\??\C:\folder", r"\Device\LanmanRedirector\;Z:0001\server\share", "", r"\Device"] {
            assert_eq!(volume('Z', other), None, "{other}");
        }
    }
}
