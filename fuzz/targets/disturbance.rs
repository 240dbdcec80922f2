//! Bytes as `disturbance.toml`: an answer, never a panic; what is accepted is the same when written and read, and time goes on.
#![no_main]

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{NEVER, Timelines};
use libfuzzer_sys::fuzz_target;

const RANKS: u32 = 3;

fuzz_target!(|bytes: &[u8]| {
    match Disturbance::from_toml(bytes, "file") {
        Ok(disturbance) => {
            let written = disturbance.to_toml().expect("it can be written");
            assert_eq!(Disturbance::from_toml(written.as_bytes(), "again").as_ref(), Ok(&disturbance));
            for altered in [disturbance.aligned(), disturbance.clone()] {
                match Timelines::new(&altered, RANKS, 1) {
                    Ok(timelines) => walk(&timelines),
                    Err(error) => assert!(error.to_string().contains("ranks"), "{error}"),
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});

fn walk(timelines: &Timelines) {
    for rank in 0..RANKS {
        let mut timeline = timelines.rank(rank);
        let mut last = 0;
        for interval in std::iter::from_fn(|| timeline.interval()).take(50) {
            assert!(interval.start >= last && interval.end > interval.start);
            assert!(usize::from(interval.cause) < timelines.causes().len());
            last = interval.end;
        }
        let mut timeline = timelines.rank(rank);
        let mut at = 0;
        for ns in [0, 1, 1000, 100_000] {
            let done = timeline.work(at, ns);
            assert!(done >= at + ns || done >= NEVER);
            at = done;
        }
    }
}
