//! Burner: a fixed number of iterations of x += sin x.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::MeasureError;
use crosswind_linux as linux;

use crate::placement;

/// Iterations between two checks of the stop flag.
const STEP: u64 = 1 << 14;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burner {
    pub iterations: u64,
    /// Nice level, -20 to 19.
    pub nice: i32,
    /// CPUs that it may use; empty: any.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Burned {
    /// Time when it started to compute, ns of the monotonic clock.
    pub began_ns: u64,
    /// Time when it ended, ns of the monotonic clock.
    pub ended_ns: u64,
    pub cpu_ns: u64,
}

/// Runs `iterations` iterations, or fewer if `stop` is set.
pub fn burn(iterations: u64, stop: &AtomicBool) {
    let (mut x, mut left) = (1.0f64, iterations);
    while left > 0 && !stop.load(Ordering::Relaxed) {
        let step = left.min(STEP);
        for _ in 0..step {
            x += x.sin();
        }
        x = black_box(x);
        left -= step;
    }
}

impl Burner {
    /// Pins the calling thread and sets its nice level.
    ///
    /// # Errors
    /// When a CPU may not be used, or the nice level needs a privilege that is missing.
    pub fn place(&self) -> Result<(), MeasureError> {
        placement::place_this_thread("a burner", &self.cpus, self.nice)
    }

    /// Waits for the common start, computes, and returns times and CPU time.
    ///
    /// # Errors
    /// When the thread's own clock cannot be read.
    pub fn run(&self, start_ns: u64) -> Result<Burned, MeasureError> {
        while linux::now_ns() < start_ns {
            linux::sleep_until(start_ns);
        }
        let began_ns = linux::now_ns();
        let before = own_cpu_ns()?;
        burn(self.iterations, &AtomicBool::new(false));
        Ok(Burned { began_ns, ended_ns: linux::now_ns(), cpu_ns: own_cpu_ns()? - before })
    }
}

/// Returns the CPU time of the calling thread, ns.
///
/// # Errors
/// When its clock cannot be read.
pub fn own_cpu_ns() -> Result<u64, MeasureError> {
    linux::thread_cpu_ns(linux::thread_id()).map_err(MeasureError::system("reading the thread's CPU time"))
}

/// Measures the iterations per second of one thread of this host, in a trial of at least `seconds`.
#[must_use]
pub fn iterations_per_s(seconds: f64) -> f64 {
    let never = AtomicBool::new(false);
    let (begun, mut done) = (linux::now_ns(), 0u64);
    loop {
        burn(64 * STEP, &never);
        done += 64 * STEP;
        let elapsed_s = (linux::now_ns() - begun) as f64 * 1e-9;
        if elapsed_s >= seconds {
            return done as f64 / elapsed_s;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burner_begins_at_the_start_and_computes_with_its_own_processor_time() {
        let burner = Burner { iterations: 100_000, nice: 0, cpus: Vec::new() };
        let start = linux::now_ns() + 2_000_000;
        let burned = burner.run(start).expect("a clock of its own");
        assert!(burned.began_ns >= start && burned.ended_ns > burned.began_ns && burned.cpu_ns > 0);
    }

    #[test]
    fn a_burner_that_is_told_to_stop_stops() {
        burn(u64::MAX, &AtomicBool::new(true)); // would take centuries
    }
}
