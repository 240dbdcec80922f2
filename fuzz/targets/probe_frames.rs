//! Bytes as what a probe or a peer hears: a greeting, then frames. An answer, never a panic, and no byte read past a frame.
#![no_main]

use std::io::{self, Cursor, Read, Write};

use crosswind_access::Access;
use crosswind_measure::overlap::spec::{EchoDone, PingSpec};
use crosswind_measure::protocol::{
    Belongs, LARGEST_FRAME, Reply, Request, Role, Shown, be_greeted, be_proved, greet, prove, read_frame, write_frame,
};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A connection on which the other end says what the fuzzer says.
struct Connection<'a>(Cursor<&'a [u8]>);

impl Read for Connection<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames of one kind until one is refused; each that is accepted is the same when written and read.
fn frames<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest.len();
        let Ok(message) = read_frame::<T>(&mut rest) else { break };
        assert!(before - rest.len() <= 4 + LARGEST_FRAME);
        let mut wire = Vec::new();
        write_frame(&mut wire, &message).expect("what was small enough to be read");
        assert_eq!(read_frame::<T>(&mut wire.as_slice()).expect("our own"), message);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let access = Access::of(Some("a token for tests only"), None).expect("long enough");
    let mut caller = Connection(Cursor::new(bytes));
    if let Ok((_, meeting)) = be_greeted(&mut caller) {
        assert!(be_proved(&mut caller, &access, &meeting).is_err(), "a proof cannot be guessed");
    }
    let mut listener = Connection(Cursor::new(bytes));
    if let Ok(meeting) = greet(&mut listener, Role::Control) {
        assert!(prove(&mut listener, &access, &meeting).is_err(), "a proof cannot be guessed");
    }
    frames::<Shown>(bytes);
    frames::<Request>(bytes);
    frames::<Reply>(bytes);
    frames::<Belongs>(bytes);
    frames::<PingSpec>(bytes);
    frames::<EchoDone>(bytes);
});
