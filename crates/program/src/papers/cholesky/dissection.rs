//! Nested dissection: the order in which the points of a grid are eliminated, and the rank that owns each.

use crate::random::Stream;

const OWNERS: u64 = 10;
/// Parts of at most this many points in both directions are not cut. Parts of several ranks must be smaller still.
const SMALLEST: u32 = 3;

/// Points from `low` up to but excluding `high`, across and along.
#[derive(Clone, Copy, Debug)]
struct Part {
    low: [u32; 2],
    high: [u32; 2],
}

/// The points of a grid in the order of elimination, each with its owner.
pub(super) struct Dissection {
    pub points: Vec<(u32, u32)>,
    width: u32,
    panel: u32,
    random: Stream,
}

impl Dissection {
    pub fn new(width: u32, length: u32, panel: u32, ranks: u32, seed: u64) -> Self {
        let mut dissection =
            Self { points: Vec::new(), width, panel, random: Stream::new(seed, u64::from(ranks), OWNERS) };
        dissection.cut(Part { low: [0, 0], high: [width, length] }, 0, ranks);
        dissection
    }

    /// Cuts a part that belongs to the ranks from `low` up to but excluding `high`.
    fn cut(&mut self, part: Part, low: u32, high: u32) {
        let size = [part.high[0] - part.low[0], part.high[1] - part.low[1]];
        let along = usize::from(size[1] >= size[0]);
        if size[along] <= SMALLEST && (high - low == 1 || size[along] < SMALLEST) {
            return self.take(part, low, high);
        }
        let middle = (low + high) / 2;
        // With several ranks, each side's size is proportional to its number of ranks.
        let share = if high - low > 1 { f64::from(middle - low) / f64::from(high - low) } else { 0.5 };
        let cut = (f64::from(size[along] - 1) * share).round().clamp(1.0, f64::from(size[along] - 2)) as u32;
        let [mut before, mut separator, mut after] = [part; 3];
        before.high[along] = part.low[along] + cut;
        separator.low[along] = before.high[along];
        separator.high[along] = before.high[along] + 1;
        after.low[along] = separator.high[along];
        if high - low > 1 {
            self.cut(before, low, middle);
            self.cut(after, middle, high);
        } else {
            self.cut(before, low, high);
            self.cut(after, low, high);
        }
        self.take(separator, low, high);
    }

    /// Appends the points of a part in grid order, in panels each owned by a random one of its ranks.
    fn take(&mut self, part: Part, low: u32, high: u32) {
        let mut taken = 0;
        let mut owner = low;
        for y in part.low[1]..part.high[1] {
            for x in part.low[0]..part.high[0] {
                if taken % self.panel == 0 {
                    owner = low + self.random.below(self.points.len() as u64, u64::from(high - low)) as u32;
                }
                taken += 1;
                self.points.push((y * self.width + x, owner));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_taken_once_whatever_the_grid_and_the_ranks() {
        for (width, length) in [(1, 1), (1, 7), (2, 2), (5, 40), (12, 33), (9, 4)] {
            for ranks in [1, 2, 3, 7, 64] {
                let dissection = Dissection::new(width, length, 2, ranks, 1);
                let mut points: Vec<u32> = dissection.points.iter().map(|(point, _)| *point).collect();
                points.sort_unstable();
                assert_eq!(points, (0..width * length).collect::<Vec<u32>>());
                assert!(dissection.points.iter().all(|(_, owner)| *owner < ranks));
            }
        }
    }
}
