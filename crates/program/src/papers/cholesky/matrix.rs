//! The matrices: those of a grid with random weights, symmetric, and positive definite because the diagonal dominates.

use crate::random::Stream;

const MATRICES: u64 = 11;

#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub width: u32,
    pub length: u32,
    pub seed: u64,
}

impl Matrix {
    pub fn neighbours(self, point: u32) -> impl Iterator<Item = u32> {
        let (x, y) = (point % self.width, point / self.width);
        [
            (x > 0).then(|| point - 1),
            (x + 1 < self.width).then(|| point + 1),
            (y > 0).then(|| point - self.width),
            (y + 1 < self.length).then(|| point + self.width),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns an entry of matrix `number`, on the diagonal or between neighbours.
    pub fn entry(self, number: u64, a: u32, b: u32) -> f64 {
        let place = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
        let drawn = Stream::new(self.seed, number, MATRICES).unit(place);
        if a == b { 4.25 + drawn } else { -0.5 - 0.5 * drawn }
    }
}
