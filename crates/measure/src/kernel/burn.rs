//! Kernel `burn`: x += sin x in a loop, arithmetic that touches no memory (quadrics-overlap, section 3).

use std::hint::black_box;

use super::Kernel;
use crate::error::MeasureError;

const STEP: usize = 256;
/// Iterations per unit of work.
pub const UNIT: usize = 1_000_000;

pub struct Burn(f64);

impl Burn {
    #[must_use]
    pub fn new() -> Self {
        Self(1.0)
    }
}

impl Default for Burn {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel for Burn {
    fn step(&mut self) -> Result<(), MeasureError> {
        let mut x = self.0;
        for _ in 0..STEP {
            x += x.sin();
        }
        self.0 = black_box(x);
        Ok(())
    }

    fn steps_per_unit(&self) -> f64 {
        UNIT as f64 / STEP as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iteration_converges_to_pi() {
        let mut burn = Burn::new();
        burn.step().expect("never fails");
        assert!((burn.0 - std::f64::consts::PI).abs() < 1e-12);
    }
}
