//! Files without a name are written and read like others.

use std::io::{Read as _, Seek as _, Write as _};

#[test]
fn an_anonymous_file_is_read_back() {
    let mut file = nyquist_system::anonymous_file().unwrap();
    file.write_all(b"unpacked").unwrap();
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "unpacked");
}
