//! The exchanges of the kernels, derived from the totals printed in communication-interactions, section 4.3.
//!
//! The paper's MB is 2^20 bytes. Both totals of FT are then whole transpositions, 14 x 32 MiB x (1 - 1/N), and the
//! paper's example of a link (155 Mb/s, 2480 messages/s) agrees (E4-4).
//!
//! * FT: (N - 1) (14 N + 6) messages are 186 on 4 hosts and 826 on 8: 7 transforms (one forward, 6 iterations) of two
//!   phases, each with an all-to-all transposition, and 6 all-to-one checksums.
//! * MG on 4 hosts: 816 = 4 cycles x 17 exchanges x 12. The 17 are those of NAS MG with a coarsest grid of side 4: one
//!   on the way down to each of 5 grids, one on the coarsest, two on the way up on each, one at the end. Planes of
//!   side x (side + 1.7) doubles make 24.5 MiB.
//! * MG on 8 hosts: 1472 = 4 x (14 x 24 + 32). The 14 are the exchanges with a coarsest grid of side 8. Both totals
//!   (48.8 MiB) imply that each host sends 3 messages here too, although the text says to all 7 others. Where the 32
//!   belong is unknown; here they are two exchanges with two others at the turn of the cycle, of planes of side 4.
//! * EP: as in the text. IS: the text gives no count; two all-to-all exchanges per ranking are an assumption.

use crosswind_schema::experiment::parameters::{
    Cost, EpParameters, FtParameters, IsParameters, MgParameters, NasParameters, Partners,
};

/// Receivers of a host's messages. With several, a host starts with the next host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    All,
    /// Each host sends to the hosts 1, 2, and max(3, half the hosts) further on; to fewer if there are fewer hosts.
    Three,
    /// Each host sends to the hosts 1 and 2 further on.
    Two,
    /// All others send to host 0.
    ToOne,
}

impl Exchange {
    /// Returns the distance to the receiver with this index.
    fn shift(self, place: u32, hosts: u32) -> Option<u32> {
        let shift = match (self, place) {
            (Self::All, _) | (Self::Three | Self::Two, 0 | 1) => place + 1,
            (Self::Three, 2) => (hosts / 2).max(3),
            _ => return None,
        };
        (shift < hosts).then_some(shift)
    }

    /// Returns the receiver with index `place` of a host's messages, or `None` after the last.
    pub fn receiver(self, from: u32, place: u32, hosts: u32) -> Option<u32> {
        match self {
            Self::ToOne => (from > 0 && place == 0).then_some(0),
            _ => self.shift(place, hosts).map(|shift| ((u64::from(from) + u64::from(shift)) % u64::from(hosts)) as u32),
        }
    }

    /// Returns all receivers of a host's messages, in sending order.
    pub fn receivers(self, from: u32, hosts: u32) -> impl Iterator<Item = u32> {
        (0..hosts).map_while(move |place| self.receiver(from, place, hosts))
    }

    /// Returns the number of messages that a host receives.
    pub fn received(self, host: u32, hosts: u32) -> u32 {
        match self {
            Self::All => hosts - 1,
            Self::ToOne => {
                if host == 0 {
                    hosts - 1
                } else {
                    0
                }
            }
            Self::Three | Self::Two => (0..3).take_while(|&place| self.shift(place, hosts).is_some()).count() as u32,
        }
    }

    /// Returns the total number of messages.
    pub fn messages(self, hosts: u32) -> u64 {
        match self {
            Self::ToOne => u64::from(hosts) - 1,
            _ => u64::from(hosts) * u64::from(self.received(0, hosts)),
        }
    }
}

/// A superstep: all hosts compute, then exchange messages of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub compute_s: f64,
    pub exchange: Exchange,
    pub bytes: u32,
}

/// The supersteps of a kernel.
pub(super) fn of(parameters: &NasParameters, hosts: u32) -> Vec<Step> {
    match parameters {
        NasParameters::Mg(mg) => multigrid(mg, hosts),
        NasParameters::Ft(ft) => transforms(ft, hosts),
        NasParameters::Ep(ep) => pairs(ep, hosts),
        NasParameters::Is(is) => rankings(is, hosts),
    }
}

/// Returns the seconds that each host computes for its share of `operations` operations.
fn share(operations: f64, operation_s: Cost, hosts: u32) -> f64 {
    operations * operation_s.get() / f64::from(hosts)
}

const WORD_BYTES: f64 = 8.0;
/// Columns sent along with a plane of points. NAS MG sends none, two or a frame of them, depending on the axis; 1.7
/// reproduces both printed totals.
const ALONG: f64 = 1.7;
/// Operations per point of the finest grid and cycle, as counted by NAS.
const MG_OPERATIONS: f64 = 58.0;
/// Side of the smallest grid, which is also the largest number of hosts over which it is distributed.
const COARSEST: u64 = 4;

fn plane_bytes(side: u64) -> u32 {
    let side = side as f64;
    (WORD_BYTES * side * (side + ALONG)).round() as u32
}

fn multigrid(mg: &MgParameters, hosts: u32) -> Vec<Step> {
    let finest = 1u64 << mg.side_log2.get();
    // Every host holds a part of every distributed grid.
    let coarsest = u64::from(hosts).next_power_of_two().clamp(COARSEST, finest);
    let exchange = if mg.partners == Partners::All { Exchange::All } else { Exchange::Three };
    let sides = |from: u64, to: u64| (from.ilog2()..=to.ilog2()).map(|log2| 1u64 << log2);
    let spread = |side: u64| (side, exchange);
    let gathered = (COARSEST, Exchange::Two);
    let turn = if u64::from(hosts) > COARSEST { [Some(gathered), Some(gathered)] } else { [None, None] };
    let cycle: Vec<(u64, Exchange)> = sides(coarsest, finest / 2)
        .rev()
        .map(spread)
        .chain(turn[0])
        .chain([spread(coarsest)])
        .chain(turn[1])
        .chain(sides(2 * coarsest, finest).flat_map(|side| [spread(side); 2]))
        .chain([spread(finest)])
        .collect();
    // The work on a grid is proportional to its points. That at the turn of the cycle is negligible.
    let volume = |&(side, exchange): &(u64, Exchange)| {
        if exchange == Exchange::Two { 0.0 } else { (side as f64).powi(3) }
    };
    let all: f64 = cycle.iter().map(volume).sum();
    let cycle_s = share(MG_OPERATIONS * (finest as f64).powi(3), mg.operation_s, hosts);
    let steps: Vec<Step> = cycle
        .iter()
        .map(|at| Step { compute_s: cycle_s * volume(at) / all, exchange: at.1, bytes: plane_bytes(at.0) })
        .collect();
    steps.repeat(mg.cycles.get() as usize)
}

const POINT_BYTES: u64 = 16;
const CHECKSUM_BYTES: u32 = 16;

fn transforms(ft: &FtParameters, hosts: u32) -> Vec<Step> {
    let (log2, points) = (ft.points_log2.get(), 1u64 << ft.points_log2.get());
    let transform_s = share(5.0 * points as f64 * log2 as f64, ft.operation_s, hosts);
    let parts = u64::from(hosts) * u64::from(hosts);
    let transposed = Step {
        compute_s: transform_s / 2.0,
        exchange: Exchange::All,
        bytes: (points * POINT_BYTES).div_ceil(parts) as u32,
    };
    let checksum = Step { compute_s: 0.0, exchange: Exchange::ToOne, bytes: CHECKSUM_BYTES };
    let iteration = [transposed, transposed, checksum];
    let mut steps = vec![transposed; 2];
    steps.extend(iteration.repeat(ft.iterations.get() as usize));
    steps
}

/// Operations per pair, approximately, as counted by NAS.
const EP_OPERATIONS: f64 = 100.0;
const EP_BYTES: u32 = 44;

fn pairs(ep: &EpParameters, hosts: u32) -> Vec<Step> {
    let operations = EP_OPERATIONS * (ep.pairs_log2.get() as f64).exp2();
    vec![Step { compute_s: share(operations, ep.operation_s, hosts), exchange: Exchange::ToOne, bytes: EP_BYTES }]
}

const COUNTER_BYTES: u64 = 4;

fn rankings(is: &IsParameters, hosts: u32) -> Vec<Step> {
    let bytes = ((COUNTER_BYTES << is.range_log2.get()).div_ceil(u64::from(hosts))) as u32;
    let ranking_s = share((is.keys_log2.get() as f64).exp2(), is.operation_s, hosts);
    let counts = Step { compute_s: ranking_s, exchange: Exchange::All, bytes };
    let ranks = Step { compute_s: 0.0, ..counts };
    [counts, ranks].repeat(is.rankings.get() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchanges(steps: &[Step]) -> usize {
        steps.iter().filter(|step| step.exchange != Exchange::Two).count()
    }

    #[test]
    fn a_cycle_of_mg_has_the_exchanges_of_nas_mg() {
        let once =
            MgParameters { cycles: crosswind_schema::experiment::parameters::Whole::fixed(1), ..Default::default() };
        assert_eq!(exchanges(&multigrid(&once, 4)), 17);
        assert_eq!(exchanges(&multigrid(&once, 8)), 14);
        let sides: Vec<u32> = multigrid(&once, 4).iter().map(|step| step.bytes).collect();
        let planes = [64, 32, 16, 8, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 128].map(plane_bytes);
        assert_eq!(sides, planes);
        // A grid no larger than the coarsest is smoothed, and its residual computed.
        assert_eq!(exchanges(&multigrid(&once, 128)), 2);
    }

    #[test]
    fn every_host_sends_to_others_only_and_gets_as_many_as_are_sent_to_it() {
        for exchange in [Exchange::All, Exchange::Three, Exchange::Two, Exchange::ToOne] {
            for hosts in 1..20 {
                let mut got = vec![0; hosts as usize];
                for from in 0..hosts {
                    let to: Vec<u32> = exchange.receivers(from, hosts).collect();
                    assert!(!to.contains(&from), "{exchange:?} {hosts}");
                    let distinct: std::collections::HashSet<&u32> = to.iter().collect();
                    assert_eq!(distinct.len(), to.len(), "{exchange:?} {hosts}");
                    to.iter().for_each(|&to| got[to as usize] += 1);
                }
                let told: Vec<u32> = (0..hosts).map(|host| exchange.received(host, hosts)).collect();
                assert_eq!(got, told, "{exchange:?} {hosts}");
                assert_eq!(got.iter().map(|&n| u64::from(n)).sum::<u64>(), exchange.messages(hosts));
            }
        }
    }
}
