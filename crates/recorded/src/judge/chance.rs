//! Whether a rank has more rare long times than others by chance.
//!
//! Where long times come at random, ranks are exchangeable: all have them at one rate, and they are as long as those of the
//! suspect rank's peers. The rate is not known exactly either: it has the posterior of a Poisson process (Jeffreys' prior).
//! Chance explains the suspect rank if some rank would often have as much in all. Where no peer has a long time, nothing says
//! that they come at random.

use super::noise::Draws;
use super::series::{APART, Series};

/// Ranks are drawn this often together, at most and at least; and long times in all.
const MOST: usize = 4_000;
const LEAST: usize = 400;
const BUDGET: f64 = 2e7;

/// The times of one rank that no noise explains.
#[derive(Clone, Debug, Default)]
pub struct Long {
    /// How much longer than usual, ns.
    pub excesses: Vec<f64>,
    /// Number of all its times.
    pub times: usize,
}

/// Returns the long times of each rank.
#[must_use]
pub fn long_times(all: &[Series], ranks: usize) -> Vec<Long> {
    let mut long = vec![Long::default(); ranks];
    for one in all {
        let of = &mut long[one.rank as usize];
        of.times += one.values.len();
        let excesses = one.values.iter().map(|value| value - one.level.center);
        of.excesses.extend(excesses.filter(|excess| *excess > APART * one.level.spread));
    }
    long
}

/// Returns how likely it is that one of `ranks` exchangeable ranks has long times of `excess` ns in all, or more. `times`: number
/// of times of the suspect rank.
#[must_use]
pub fn likely<'a>(excess: f64, times: usize, peers: impl Iterator<Item = &'a Long>, ranks: usize) -> f64 {
    let (mut seen, mut exposed) = (Vec::new(), 0);
    for peer in peers {
        seen.extend_from_slice(&peer.excesses);
        exposed += peer.times;
    }
    if seen.is_empty() {
        return 0.0;
    }
    let usual = seen.len() as f64 * times as f64 / exposed.max(1) as f64;
    let rounds = ((BUDGET / (ranks as f64 * (usual + 1.0))) as usize).clamp(LEAST, MOST);
    let mut draws = Draws(23);
    let mut reached = 0;
    for _ in 0..rounds {
        let events = 0.5 * draws.chi_square(2.0 * seen.len() as f64 + 1.0);
        let mean = events * times as f64 / exposed.max(1) as f64;
        let mut total = || {
            let (mut upto, mut sum) = (draws.exponential(), 0.0);
            while upto < mean {
                sum += seen[draws.below(seen.len())];
                upto += draws.exponential();
            }
            sum
        };
        reached += usize::from((0..ranks).any(|_| total() >= excess));
    }
    reached as f64 / rounds as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(excesses: &[f64]) -> Long {
        Long { excesses: excesses.to_vec(), times: 100 }
    }

    #[test]
    fn the_rank_with_most_of_rare_long_times_has_them_by_chance() {
        let peers = [rank(&[5.0; 3]), rank(&[5.0; 2]), rank(&[5.0; 4])];
        assert!(likely(30.0, 100, peers.iter(), 4) > 0.1);
        assert!(likely(75.0, 100, peers.iter(), 4) < 0.005);
    }

    #[test]
    fn times_that_are_longer_than_those_of_peers_are_no_chance() {
        let peers = [rank(&[5.0]), rank(&[6.0]), rank(&[])];
        assert!(likely(100.0, 100, peers.iter(), 4) < 0.005);
    }

    #[test]
    fn without_long_times_of_peers_nothing_comes_at_random() {
        let peers = [rank(&[]), rank(&[])];
        assert!(likely(1.0, 100, peers.iter(), 3) < 0.005);
    }
}
