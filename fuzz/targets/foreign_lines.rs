//! Bytes as what a foreign process answers: an answer or a complaint, never a panic, and nothing shown that a terminal obeys.
#![no_main]

use crosswind_measure::foreign::lines::{Answer, Hello, local_port, nothing, shown, steps_per_unit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(shown(bytes).bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    for line in bytes.split(|byte| *byte == b'\n') {
        match Answer::parse(line) {
            Ok(Answer::Ok(words)) => {
                assert!(words.iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())));
                if let Ok(hello) = Hello::parse(&words) {
                    assert!(!hello.name.is_empty() && !hello.version.is_empty());
                }
                if let Ok(steps) = steps_per_unit(&words) {
                    assert!(steps.is_finite() && steps > 0.0);
                }
                let _ = (local_port(&words), nothing("close", &words));
            }
            Ok(Answer::Error(why)) => assert!(why.bytes().all(|byte| (b' '..=b'~').contains(&byte))),
            Err(why) => assert!(!why.chars().any(char::is_control), "{why}"),
        }
    }
});
