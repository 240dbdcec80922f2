//! Kernel `triad`: a[i] = b[i] + s c[i] over arrays that no cache holds, bound by memory bandwidth (after McCalpin's
//! STREAM triad).

use std::hint::black_box;

use super::Kernel;
use crate::error::MeasureError;

const STEP: usize = 2048;
/// Elements per unit of work.
pub const UNIT: usize = 1_000_000;
/// Assumed size of the last-level cache if the system does not report it.
const UNKNOWN_CACHE_BYTES: usize = 32 << 20;
const SCALE: f64 = 3.0;

/// Three arrays, each as large as the last-level cache or larger.
pub struct Triad {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    at: usize,
}

impl Triad {
    /// Arrays of `elements` numbers, rounded up to whole steps.
    #[must_use]
    pub fn new(elements: usize) -> Self {
        let elements = elements.div_ceil(STEP).max(1) * STEP;
        let ramp = |from: f64| (0..elements).map(|i| from + i as f64).collect();
        Self { a: vec![0.0; elements], b: ramp(0.0), c: ramp(1.0), at: 0 }
    }

    /// Arrays that the last-level cache cannot hold.
    ///
    /// # Errors
    /// When they would take more than half of the free memory.
    pub fn beyond_the_cache() -> Result<Self, MeasureError> {
        let each = last_cache_bytes().unwrap_or(UNKNOWN_CACHE_BYTES);
        if let Some(free) = available_bytes().filter(|free| 3 * each > free / 2) {
            let permitted =
                format!("one whose {} MB fit in half of the {} MB free", 3 * each / 1_000_000, free / 1_000_000);
            return Err(MeasureError::value("kernel", "triad", permitted));
        }
        Ok(Self::new(each / size_of::<f64>()))
    }
}

impl Kernel for Triad {
    fn step(&mut self) -> Result<(), MeasureError> {
        let part = self.at..self.at + STEP;
        let sources = self.b[part.clone()].iter().zip(&self.c[part.clone()]);
        for (a, (b, c)) in self.a[part.clone()].iter_mut().zip(sources) {
            *a = b + SCALE * c;
        }
        black_box(&mut self.a[part]);
        self.at = (self.at + STEP) % self.a.len();
        Ok(())
    }

    fn steps_per_unit(&self) -> f64 {
        UNIT as f64 / STEP as f64
    }
}

fn last_cache_bytes() -> Option<usize> {
    (0..8)
        .filter_map(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok().map(|kib| kib << 10)
        })
        .max()
}

fn available_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_writes_b_plus_three_c_everywhere() {
        let mut triad = Triad::new(3 * STEP - 5);
        for _ in 0..3 {
            triad.step().expect("never fails");
        }
        assert_eq!(triad.at, 0);
        assert!(triad.a.iter().enumerate().all(|(i, a)| *a == i as f64 + SCALE * (1.0 + i as f64)));
    }
}
