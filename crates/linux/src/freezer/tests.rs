//! Processes that are frozen, stopped by job control, and released.

use std::process::{Child, Command};

use rustix::process::{WaitOptions, waitpid};

use super::*;
use crate::time::now_ns;

/// A child that sleeps, and ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep is there"))
    }

    fn pid(&self) -> Pid {
        self.0.id() as Pid
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("our own child, not yet waited for");
    }

    /// Waits until job control has stopped all of it.
    fn wait_for_stop(&self) {
        let found = waitpid(one(self.pid()).ok(), WaitOptions::UNTRACED).expect("our own child");
        assert!(found.is_some_and(|(_, status)| status.stopped()), "{found:?}");
    }

    fn wait_for_state(&self, state: char) {
        let until = later();
        while checks::status(self.pid()).expect("it exists").state != state {
            assert!(now_ns() < until, "not in the state {state}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn later() -> u64 {
    now_ns() + 60_000_000_000
}

#[test]
fn what_job_control_stopped_in_mid_session_is_let_go_stays_stopped_and_can_be_continued() {
    let (freezer, sleeper) = (Freezer::start().expect("starts"), Sleeper::start());
    let target = freezer.seize(&[sleeper.pid()], Some(Means::Tracing)).expect("our own child");
    sleeper.signal(Signal::STOP);
    sleeper.wait_for_stop();
    freezer.freeze(target, later()).expect("it is there"); // by then the tracer has seen the stop
    freezer.thaw(target).expect("it is there");
    freezer.release(target).expect("it is there");
    assert_eq!(checks::status(sleeper.pid()).expect("it is there").tracer, 0, "it is traced still");
    sleeper.wait_for_state('T');
    let other = Freezer::start().expect("starts");
    assert_eq!(other.seize(&[sleeper.pid()], None), Err(Refusal::Stopped(sleeper.pid())));
    sleeper.signal(Signal::CONT);
    sleeper.wait_for_state('S');
    freezer.seize(&[sleeper.pid()], Some(Means::Tracing)).expect("it runs");
}
