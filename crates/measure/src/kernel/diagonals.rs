//! Kernel `diagonals`, the papers' computation: k diagonals of the square of an M x M matrix of 32-bit integers
//! (interference-aware-scheduling, section 2.1). Element (i, i + d mod M) of diagonal d is the dot product of row i
//! and column i + d; diagonals 0..k make one unit of work, 2 k M^2 integer operations.

use std::hint::black_box;

use super::Kernel;
use crate::error::MeasureError;
use crate::pages::Pages;

/// Multiplications per step, about 2 us: counting and stopping then cost nothing visible.
const STEP: usize = 4096;

/// The matrix, and the position of the computation in its square.
pub struct Diagonals {
    side: usize,
    diagonals: usize,
    matrix: Pages,
    dots_per_step: usize,
    diagonal: usize,
    row: usize,
}

impl Diagonals {
    /// Creates a matrix of this side, filled with small numbers that no compiler can predict.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(side: usize, diagonals: usize) -> Result<Self, MeasureError> {
        let mut matrix = Pages::drawn(side * side).map_err(MeasureError::system("taking memory for the matrix"))?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for value in matrix.iter_mut() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *value = (state >> 56) as i32 - 128;
        }
        let matrix = black_box(matrix);
        Ok(Self { side, diagonals, matrix, dots_per_step: (STEP / side).max(1), diagonal: 0, row: 0 })
    }

    /// Returns element (row, column) of the square, modulo 2^32.
    #[must_use]
    pub fn of_square(&self, row: usize, column: usize) -> i32 {
        let row = &self.matrix[row * self.side..(row + 1) * self.side];
        let column = self.matrix[column..].iter().step_by(self.side);
        row.iter().zip(column).fold(0, |sum: i32, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
    }
}

impl Kernel for Diagonals {
    fn step(&mut self) -> Result<(), MeasureError> {
        let mut check = 0i32;
        for _ in 0..self.dots_per_step {
            check = check.wrapping_add(self.of_square(self.row, (self.row + self.diagonal) % self.side));
            self.row += 1;
            if self.row == self.side {
                self.row = 0;
                self.diagonal = (self.diagonal + 1) % self.diagonals;
            }
        }
        black_box(check);
        Ok(())
    }

    fn steps_per_unit(&self) -> f64 {
        (self.side * self.diagonals) as f64 / self.dots_per_step as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_are_those_of_the_naive_square() {
        let kernel = Diagonals::new(12, 3).expect("memory");
        let m = |i: usize, j: usize| i64::from(kernel.matrix[i * 12 + j]);
        for d in 0..12 {
            for i in 0..12 {
                let j = (i + d) % 12;
                let naive: i64 = (0..12).map(|k| m(i, k) * m(k, j)).sum();
                assert_eq!(i64::from(kernel.of_square(i, j)), naive, "element {i}, {j}");
            }
        }
    }

    #[test]
    fn a_units_steps_visit_each_element_of_its_diagonals_once() {
        for (side, diagonals) in [(8, 1), (64, 3), (1024, 2), (4096, 1)] {
            let mut kernel = Diagonals::new(side, diagonals).expect("memory");
            let steps = kernel.steps_per_unit();
            // If a step does several units, it must do a whole number of them.
            for _ in 0..steps.max(1.0) as usize {
                kernel.step().expect("never fails");
            }
            let units = (1.0 / steps).max(1.0);
            assert!((units - units.round()).abs() < 1e-9 || side * diagonals % kernel.dots_per_step == 0);
            let dots = steps.max(1.0) as usize * kernel.dots_per_step;
            assert_eq!(kernel.row, dots % side);
            assert_eq!(kernel.diagonal, dots / side % diagonals);
        }
    }
}
