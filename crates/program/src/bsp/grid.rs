//! Ranks on a torus of one to three dimensions.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Ranks along each dimension. 1 for unused dimensions.
    pub sides: [u32; 3],
    dimensions: u32,
}

impl Grid {
    /// Creates a torus of `ranks` ranks with similar sides. Each side is the largest divisor of the rest that does not
    /// exceed the rest's root.
    ///
    /// # Examples
    /// ```
    /// use crosswind_program::bsp::Grid;
    /// assert_eq!(Grid::new(64, 3).sides, [4, 4, 4]);
    /// assert_eq!(Grid::new(12, 2).sides, [3, 4, 1]);
    /// assert_eq!(Grid::new(7, 2).sides, [1, 7, 1]);
    /// ```
    #[must_use]
    pub fn new(ranks: u32, dimensions: u32) -> Self {
        let dimensions = dimensions.clamp(1, 3);
        let mut sides = [1; 3];
        let mut left = ranks.max(1);
        for (at, side) in sides.iter_mut().enumerate().take(dimensions as usize) {
            let others = dimensions - at as u32;
            *side = largest_divisor_within_root(left, others);
            left /= *side;
        }
        Self { sides, dimensions }
    }

    /// Returns the number of neighbours of a rank, two per dimension. On a short side some are the same rank, or the
    /// rank itself.
    #[must_use]
    pub const fn neighbours(&self) -> u32 {
        2 * self.dimensions
    }

    /// Returns a rank's neighbour in a direction below [`Grid::neighbours`]. 0 and 1 are backward and forward in the
    /// first dimension.
    #[must_use]
    pub fn neighbour(&self, rank: u32, direction: u32) -> u32 {
        let dimension = (direction / 2) as usize;
        let stride: u32 = self.sides[..dimension].iter().product();
        let side = self.sides[dimension];
        let place = rank / stride % side;
        let step = if direction % 2 == 0 { side - 1 } else { 1 };
        rank - place * stride + (place + step) % side * stride
    }
}

/// Returns the largest divisor of `n` that does not exceed its `root`-th root.
fn largest_divisor_within_root(n: u32, root: u32) -> u32 {
    if root == 1 {
        return n;
    }
    let mut best = 1;
    let mut divisor = 1u32;
    while u64::from(divisor).pow(root) <= u64::from(n) {
        if n % divisor == 0 {
            best = divisor;
        }
        divisor += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_and_forth_ends_where_it_began_and_every_rank_is_somebodys_neighbour() {
        for ranks in [1, 2, 3, 12, 30, 64, 97, 1000] {
            for dimensions in 1..=3 {
                let grid = Grid::new(ranks, dimensions);
                assert_eq!(grid.sides.iter().product::<u32>(), ranks);
                for direction in 0..grid.neighbours() {
                    let mut seen = vec![false; ranks as usize];
                    for rank in 0..ranks {
                        let there = grid.neighbour(rank, direction);
                        assert_eq!(grid.neighbour(there, direction ^ 1), rank);
                        seen[there as usize] = true;
                    }
                    assert!(seen.iter().all(|&seen| seen));
                }
            }
        }
    }
}
