//! Bytes as what ranks of a program hear. An answer, never a panic; a frame is the bytes that it was read from.
#![no_main]

use crosswind_live::ranks::wire::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = decode(rest) {
        let (own, after) = rest.split_at(used);
        let mut written = Vec::new();
        frame.encode(own.len() as u64 - 5, &mut written);
        assert_eq!(written, own, "{frame:?}");
        assert_eq!(decode(&own[..own.len() - 1]), Ok(None), "a byte is missing");
        rest = after;
    }
});
