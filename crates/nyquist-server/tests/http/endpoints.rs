//! The three JSON endpoints: full responses to full requests, and each documented error.

use crate::serving::{ID, Serving};

/// Sends a request and compares the whole body.
fn check(path: &str, request: &str, expected: &str) {
    let server = Serving::new();
    let (request, expected) = (request.replace("ID", ID), expected.replace("ID", ID));
    let reply = server.ask("POST", &format!("{path}\nContent-Type: text/plain;charset=UTF-8"), request);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!((reply.status, reply.text()), (200, &*expected));
}

/// Sends a request and compares the status and the start of the error.
fn check_error(path: &str, request: &[u8], status: u16, expected: &str) {
    let reply = Serving::new().ask("POST", path, request);
    let error = reply.error();
    assert!(reply.status == status && error.starts_with(expected), "{} {error}", reply.status);
}

#[test]
fn symbolication_gives_names_lines_and_inlines() {
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[["prog","ID"]],"stacks":[[[0,4992],[0,4726]]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[["#,
            r#"{"frame":0,"module":"prog","module_offset":"0x1380","function":"f","function_offset":"0x7","#,
            r#""function_size":"0x40","file":"/a.c","line":5,"#,
            r#""inlines":[{"function":"inner"},{"function":"g","file":"h","line":3}]},"#,
            r#"{"frame":1,"module":"prog","module_offset":"0x1276","function":"h","function_offset":"0x0"}"#,
            r#"]],"found_modules":{"prog/ID":true}}]}"#,
        ),
    );
}

#[test]
fn a_browser_saves_the_profile_by_its_kinds_name() {
    let reply = Serving::new().ask("GET", "profile.json", "");
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"profile.json.gz\""));
    assert_eq!(reply.header("content-security-policy"), Some("sandbox"));
}

#[test]
fn symbolication_takes_a_bare_job() {
    check(
        "symbolicate/v5",
        r#"{"memoryMap":[["prog","ID"]],"stacks":[[[0,4726]]],"version":5}"#,
        concat!(
            r#"{"results":[{"stacks":[["#,
            r#"{"frame":0,"module":"prog","module_offset":"0x1276","function":"h","function_offset":"0x0"}"#,
            r#"]],"found_modules":{"prog/ID":true}}]}"#,
        ),
    );
}

#[test]
fn what_is_not_known_is_left_out() {
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[["prog","ID"],["libc.so.6","0"]],"stacks":[[[0,1],[1,2]],[[0,8589934592]],[]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[["#,
            r#"{"frame":0,"module":"prog","module_offset":"0x1"},"#,
            r#"{"frame":1,"module":"libc.so.6","module_offset":"0x2"}],"#,
            r#"[{"frame":0,"module":"prog","module_offset":"0x200000000"}],[]],"#,
            r#""found_modules":{"libc.so.6/0":false,"prog/ID":true}}]}"#,
        ),
    );
}

#[test]
fn a_lib_of_the_same_name_but_another_id_differs() {
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[["prog","1"]],"stacks":[[[0,4726]]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[[{"frame":0,"module":"prog","module_offset":"0x1276"}]],"#,
            r#""found_modules":{"prog/1":false}}]}"#
        ),
    );
}

#[test]
fn each_job_has_a_result_of_its_own() {
    check("symbolicate/v5", r#"{"jobs":[]}"#, r#"{"results":[]}"#);
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[],"stacks":[]},{"memoryMap":[["prog","ID"]],"stacks":[[[0,4726],[0,4726]]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[],"found_modules":{}},{"stacks":[["#,
            r#"{"frame":0,"module":"prog","module_offset":"0x1276","function":"h","function_offset":"0x0"},"#,
            r#"{"frame":1,"module":"prog","module_offset":"0x1276","function":"h","function_offset":"0x0"}"#,
            r#"]],"found_modules":{"prog/ID":true}}]}"#,
        ),
    );
}

#[test]
fn answers_missing_from_a_source_are_unknown() {
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[["short",""]],"stacks":[[[0,1]]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[[{"frame":0,"module":"short","module_offset":"0x1"}]],"#,
            r#""found_modules":{"short/":true}}]}"#
        ),
    );
}

#[test]
fn names_are_escaped_as_json() {
    check(
        "symbolicate/v5",
        r#"{"jobs":[{"memoryMap":[["a\"\\\u0001é","x"]],"stacks":[[[0,1]]]}]}"#,
        concat!(
            r#"{"results":[{"stacks":[[{"frame":0,"module":"a\"\\\u0001é","module_offset":"0x1"}]],"#,
            r#""found_modules":{"a\"\\\u0001é/x":false}}]}"#
        ),
    );
}

#[test]
fn a_source_file_comes_with_two_unknown_dates() {
    check(
        "source/v1",
        r#"{"debugName":"prog","debugId":"ID","moduleOffset":"0x510","file":"/src/foo.cc"}"#,
        concat!(
            r#"{"symbolsLastModified":null,"sourceLastModified":null,"#,
            r#""file":"/src/foo.cc","source":"int f();\n"}"#
        ),
    );
}

#[test]
fn instructions_come_with_their_offsets() {
    check(
        "asm/v1",
        r#"{"name":"prog","codeId":null,"debugName":"prog","debugId":"ID","startAddress":"0x500","size":"0x11"}"#,
        concat!(
            r#"{"startAddress":"0x500","size":"0x11","arch":"x86_64","syntax":["Intel"],"#,
            r#""instructions":[[0,"push rbp"],[1,"mov rbp, rsp"]]}"#
        ),
    );
}

#[test]
fn instructions_reach_the_end_if_requested() {
    check(
        "asm/v1",
        concat!(
            r#"{"name":"prog","codeId":"be4e","debugName":"prog","debugId":"ID","startAddress":"0x500","#,
            r#""size":"0x11","continueUntilFunctionEnd":true}"#
        ),
        concat!(
            r#"{"startAddress":"0x500","size":"0x40","arch":"x86_64","syntax":["Intel"],"#,
            r#""instructions":[[0,"push rbp"],[1,"mov rbp, rsp"]]}"#
        ),
    );
}

/// The front end shows the message only if a response has status 200.
#[test]
fn what_cannot_be_had_is_an_error_of_status_200() {
    let source = |name: &str, file: &str| {
        format!(r#"{{"debugName":"{name}","debugId":"{ID}","moduleOffset":"0x510","file":"{file}"}}"#)
    };
    let not_named = format!("the debug info of prog/{ID} names no source file /etc/passwd");
    check_error("source/v1", source("prog", "/etc/passwd").as_bytes(), 200, &not_named);
    let unknown = format!("the profile has no lib other/{ID}");
    check_error("source/v1", source("other", "/src/foo.cc").as_bytes(), 200, &unknown);
    let request = format!(r#"{{"debugName":"other","debugId":"{ID}","startAddress":"0x1","size":"0x1"}}"#);
    check_error("asm/v1", request.as_bytes(), 200, &unknown);
}

#[test]
fn a_malformed_symbolication_request_is_an_error() {
    let check = |request: &[u8], expected: &str| check_error("symbolicate/v5", request, 400, expected);
    check(b"", "bad request: EOF while parsing");
    check(b"{", "bad request: EOF while parsing");
    check(b"null", "bad request: invalid type: null");
    check(b"{} {}", "bad request: trailing characters");
    check(b"\xff\xfe", "bad request: expected value");
    check(b"{\"jobs\":[{\"memoryMap\":[[\"\xff\",\"\"]],\"stacks\":[]}]}", "bad request: invalid unicode");
    check(br#"{"memoryMap":[["\ud800",""]],"stacks":[]}"#, "bad request: unexpected end of hex escape");
    check(b"{}", "bad request: expected either jobs, or memoryMap and stacks");
    check(br#"{"memoryMap":[]}"#, "bad request: expected either jobs, or memoryMap and stacks");
    check(br#"{"jobs":[{"memoryMap":[]}]}"#, "bad request: missing field `stacks`");
    check(br#"{"jobs":[{"memoryMap":[["a"]],"stacks":[]}]}"#, "bad request: invalid length 1");
    check(
        br#"{"jobs":[{"memoryMap":[],"stacks":[[[0,1]]]}]}"#,
        "bad request: a frame of job 0 is in module 0 of 0",
    );
    check(
        br#"{"memoryMap":[["a","b"]],"stacks":[[[1,0]]]}"#,
        "bad request: a frame of job 0 is in module 1 of 1",
    );
    for number in ["-1", "1.5", "1e3", "18446744073709551616", "1e999", "\"1\"", "null", "NaN", "0x10", "[1]"]
    {
        for frame in [format!("[0,{number}]"), format!("[{number},0]")] {
            let request = format!(r#"{{"memoryMap":[["a","b"]],"stacks":[[{frame}]]}}"#);
            check(request.as_bytes(), "bad request: ");
        }
    }
}

#[test]
fn a_request_without_its_fields_is_an_error() {
    check_error("source/v1", b"{}", 400, "bad request: missing field `debugName`");
    check_error(
        "asm/v1",
        br#"{"debugName":"a","debugId":"b"}"#,
        400,
        "bad request: missing field `startAddress`",
    );
    for number in
        ["\"510\"", "\"0x\"", "\"-0x1\"", "\"0x-1\"", "1296", "-1", "null", "\"0xfffffffffffffffff\""]
    {
        let source = format!(r#"{{"debugName":"prog","debugId":"b","moduleOffset":{number},"file":"f"}}"#);
        check_error("source/v1", source.as_bytes(), 400, "bad request: ");
        let asm = format!(r#"{{"debugName":"prog","debugId":"b","startAddress":"0x1","size":{number}}}"#);
        check_error("asm/v1", asm.as_bytes(), 400, "bad request: ");
    }
    let beyond = br#"{"debugName":"prog","debugId":"b","startAddress":"0x100000000","size":"0x1"}"#;
    check_error("asm/v1", beyond, 400, "bad request: startAddress is beyond 32 bits");
}
