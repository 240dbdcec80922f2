//! Bytes as what filters hear. An answer, never a panic; a head is the bytes that it was read from.
#![no_main]

use crosswind_live::filter::wire::{HEAD, Head, Kind, LARGEST, grant, grant_payload, number};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some(head)) = Head::decode(rest) {
        assert_eq!(head.encode(), rest[..HEAD], "{head:?}");
        assert_eq!(Head::decode(&rest[..HEAD - 1]), Ok(None), "a byte is missing");
        assert!(head.bytes as usize <= LARGEST);
        let Some(payload) = rest.get(HEAD..HEAD + head.bytes as usize) else { return };
        match head.kind {
            Kind::Credit => {
                let (frames, taken) = grant(payload);
                assert_eq!(grant_payload(frames, taken), payload);
            }
            Kind::Window => assert_eq!(number(payload).to_be_bytes(), payload),
            _ => {}
        }
        rest = &rest[HEAD + payload.len()..];
    }
});
