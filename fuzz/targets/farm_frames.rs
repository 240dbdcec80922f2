//! Bytes as what an agent hears: a greeting, then frames; and as a root's journal. An answer, never a panic; a frame is the
//! bytes that it was read from, all of them and no other.
#![no_main]

use crosswind_access::greeting::Greeting;
use crosswind_access::limits::LARGEST_UNAUTHENTICATED;
use crosswind_agent::frame::{LARGEST_FRAME, decode};
use crosswind_live::farm::journal::read_records;
use crosswind_live::protocol::PROTOCOL;
use libfuzzer_sys::fuzz_target;

fn frames(bytes: &[u8], limit: usize) {
    let mut rest = bytes;
    while let Ok(Some(decoded)) = decode(rest, limit) {
        let (own, after) = rest.split_at(decoded.used);
        let mut written = Vec::new();
        decoded.frame.encode(decoded.body, &mut written);
        assert_eq!(written, own, "{:?}", decoded.frame);
        assert_eq!(decode(&own[..own.len() - 1], limit), Ok(None), "a byte is missing");
        assert!(own.len() + decoded.body <= 4 + limit);
        rest = &after[decoded.body.min(after.len())..];
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = Greeting::decode(bytes, PROTOCOL);
    frames(bytes, LARGEST_FRAME);
    frames(bytes, LARGEST_UNAUTHENTICATED);
    let (records, whole) = read_records(bytes);
    assert!(whole <= bytes.len());
    assert_eq!(read_records(&bytes[..whole]), (records, whole));
});
