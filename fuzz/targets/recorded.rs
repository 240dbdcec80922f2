//! Recorded programs of any format, handed over in pieces: whatever the bytes, a verdict or an error with its place.
#![no_main]

use crosswind_recorded::read::traces;
use crosswind_recorded::{Reader, judge};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = |rank: usize, piece: usize| {
        let mut reader = Reader::new(&format!("rank-{rank}"));
        for part in bytes.chunks(piece) {
            reader.feed(part)?;
        }
        reader.finish()
    };
    match (read(0, 1 << 20), read(1, 7)) {
        (Ok(whole), Ok(pieces)) => {
            assert_eq!(whole.len(), pieces.len());
            if let Ok(mut found) = traces(whole) {
                // The same file once more, as another rank's.
                if let (Ok(other), 1) = (traces(pieces), found.len()) {
                    found.extend(other.into_iter().map(|mut trace| {
                        trace.rank = Some(trace.number() + 1);
                        trace
                    }));
                }
                let verdict = judge(found);
                assert!(["straggler", "none", "unidentifiable"].contains(&verdict.verdict.as_str()));
            }
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        _ => panic!("the pieces decide what is read"),
    }
});
