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
/// Chance explains long times, so it explains an excess of which they are at least this part.
const MOSTLY: f64 = 0.5;

/// The times of one rank that no noise explains.
#[derive(Clone, Debug, Default)]
pub struct Long {
    /// How much longer than usual each is, ns.
    pub excesses: Vec<f64>,
    /// Number of all its times, long or not.
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

/// Returns whether chance explains an excess of `excess` ns, most of it the long times of `own`: one of `ranks` exchangeable
/// ranks has as much in all, and one has as many, each more often than `chance`.
#[must_use]
pub fn explains<'a>(excess: f64, own: &Long, peers: impl Iterator<Item = &'a Long>, ranks: usize, chance: f64) -> bool {
    let (mut seen, mut exposed) = (Vec::new(), 0);
    for peer in peers {
        seen.extend_from_slice(&peer.excesses);
        exposed += peer.times;
    }
    if seen.is_empty() || own.excesses.iter().sum::<f64>() < MOSTLY * excess {
        return false;
    }
    let part = own.times as f64 / exposed.max(1) as f64;
    let rounds = ((BUDGET / (ranks as f64 * (seen.len() as f64 * part + 1.0))) as usize).clamp(LEAST, MOST);
    let mut draws = Draws(23);
    let (mut as_much, mut as_many) = (0, 0);
    for _ in 0..rounds {
        let mean = 0.5 * draws.chi_square(2.0 * seen.len() as f64 + 1.0) * part;
        let (mut most, mut count) = (0.0f64, 0);
        for _ in 0..ranks {
            let (mut upto, mut sum, mut number) = (draws.exponential(), 0.0, 0);
            while upto < mean {
                sum += seen[draws.below(seen.len())];
                number += 1;
                upto += draws.exponential();
            }
            (most, count) = (most.max(sum), count.max(number));
        }
        as_much += usize::from(most >= excess);
        as_many += usize::from(count >= own.excesses.len());
    }
    // Two tests share the chance.
    as_much.min(as_many) as f64 > 0.5 * chance * rounds as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(excesses: &[f64]) -> Long {
        Long { excesses: excesses.to_vec(), times: 100 }
    }

    fn is_chance(own: &[f64], peers: &[Long]) -> bool {
        explains(own.iter().sum(), &rank(own), peers.iter(), peers.len() + 1, 0.005)
    }

    #[test]
    fn the_rank_with_most_of_rare_long_times_has_them_by_chance() {
        let peers = [rank(&[5.0; 3]), rank(&[5.0; 2]), rank(&[5.0; 4])];
        assert!(is_chance(&[5.0; 6], &peers));
        assert!(!is_chance(&[5.0; 16], &peers));
    }

    #[test]
    fn longer_or_more_times_than_those_of_peers_are_no_chance() {
        let peers = [rank(&[5.0]), rank(&[6.0]), rank(&[])];
        assert!(!is_chance(&[100.0], &peers));
        assert!(!is_chance(&[1.0; 12], &peers));
    }

    #[test]
    fn without_long_times_of_peers_nothing_comes_at_random() {
        assert!(!is_chance(&[1.0], &[rank(&[]), rank(&[])]));
    }

    #[test]
    fn an_excess_that_is_mostly_no_long_times_is_no_chance() {
        let peers = [rank(&[5.0; 3]), rank(&[5.0; 2])];
        assert!(!explains(12.0, &rank(&[5.0]), peers.iter(), 3, 0.005));
    }
}
