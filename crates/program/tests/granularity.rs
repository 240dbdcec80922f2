//! Checks that what the programs compute and send on 64 ranks agrees with scheduling-and-communication, section 2.3.
//!
//! Uses the default parameters except for the length of the run, which changes no ratio. Where the paper gives no
//! number ("several hundred microseconds"), the range is an assumption.

use crosswind_program::plain::{self, Tally};
use crosswind_program::{Cholesky, Column, Connect, Em3d, Kind, Program, Sample};
use crosswind_schema::experiment::parameters::{CholeskyParameters, Em3dParameters, SampleParameters, Whole};

const RANKS: u32 = 64;
/// Data in a packet of the CM-5.
const PACKET_BYTES: u64 = 16;

struct Measured {
    all: Tally,
    tallies: Vec<Tally>,
}

impl Measured {
    fn of<P: Program>(program: &P) -> Self {
        let tallies = plain::run(program, 5).unwrap().tallies;
        let mut all = Tally::default();
        tallies.iter().for_each(|tally| all.add(tally));
        Self { all, tallies }
    }

    fn microseconds_between_messages(&self) -> f64 {
        self.all.compute_ns as f64 / 1e3 / self.all.all_messages() as f64
    }

    fn mean_bytes(&self) -> f64 {
        self.all.all_bytes() as f64 / self.all.all_messages() as f64
    }

    fn barriers(&self) -> u64 {
        self.all.barriers / u64::from(RANKS)
    }

    fn milliseconds_between_barriers(&self) -> f64 {
        self.all.compute_ns as f64 / 1e6 / self.all.barriers as f64
    }

    /// Computation of the busiest rank, relative to the mean.
    fn imbalance(&self) -> f64 {
        let most = self.tallies.iter().map(|tally| tally.compute_ns).max().unwrap();
        most as f64 * f64::from(RANKS) / self.all.compute_ns as f64
    }

    fn kinds(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().zip(self.all.messages).filter(|(_, sent)| *sent > 0).map(|(kind, _)| kind).collect()
    }
}

#[track_caller]
fn lies(value: f64, range: std::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{value} is not in {range:?}");
}

#[test]
fn cholesky_computes_for_several_hundred_microseconds_between_messages_of_70_bytes() {
    let parameters = CholeskyParameters { matrices: Whole::fixed(2), ..Default::default() };
    let measured = Measured::of(&Cholesky::new(&parameters, RANKS, 1));
    assert_eq!(measured.kinds(), [Kind::Store, Kind::Get]);
    lies(measured.microseconds_between_messages(), 200.0..=600.0);
    lies(measured.mean_bytes(), 65.0..=75.0);
    lies(measured.imbalance(), 1.3..=2.0);
    // No rank waits for all others. Ranks synchronize in pairs.
    assert_eq!(measured.barriers(), 0);
}

#[test]
#[ignore = "long: make test-long"]
fn connect_computes_for_40_microseconds_between_messages_of_one_packet() {
    let measured = Measured::of(&Connect::new(&Default::default(), RANKS, 1));
    assert_eq!(measured.kinds(), [Kind::Post, Kind::Get]);
    lies(measured.microseconds_between_messages(), 35.0..=45.0);
    assert!(measured.all.largest_bytes <= PACKET_BYTES);
    lies(measured.imbalance(), 1.2..=1.6);
    lies(measured.milliseconds_between_barriers(), 60.0..=200.0);
}

#[test]
#[ignore = "long: make test-long"]
fn column_stores_more_than_16_kilobytes_at_once_in_phases_of_seconds_that_end_with_barriers() {
    let measured = Measured::of(&Column::new(&Default::default(), RANKS, 1));
    assert_eq!(measured.kinds(), [Kind::Store]);
    lies(measured.mean_bytes(), 16_385.0..=32_768.0);
    assert_eq!(measured.barriers(), 8);
    lies(measured.milliseconds_between_barriers(), 1_000.0..=3_000.0);
    lies(measured.imbalance(), 1.0..=1.01);
}

#[test]
fn em3d_computes_for_100_microseconds_between_messages_of_two_packets_and_has_a_barrier_in_less_than_10_milliseconds() {
    let parameters = Em3dParameters { steps: Whole::fixed(40), ..Default::default() };
    let measured = Measured::of(&Em3d::new(&parameters, RANKS, 1));
    assert_eq!(measured.kinds(), [Kind::Store, Kind::Post, Kind::Request]);
    lies(measured.microseconds_between_messages(), 80.0..=120.0);
    lies(measured.mean_bytes(), PACKET_BYTES as f64..=2.0 * PACKET_BYTES as f64);
    lies(measured.milliseconds_between_barriers(), 5.0..=8.0);
    lies(measured.imbalance(), 1.0..=1.02);
}

#[test]
fn sample_sends_every_key_in_a_packet_to_a_random_rank_between_few_barriers() {
    assert_eq!(SampleParameters::default().keys_per_rank.get(), 128 * 1024);
    let keys = 4_096;
    let parameters = SampleParameters { keys_per_rank: Whole::fixed(keys), ..Default::default() };
    let measured = Measured::of(&Sample::new(&parameters, RANKS, 1));
    assert_eq!(measured.kinds(), [Kind::Store, Kind::Post]);
    let [_, posts, ..] = measured.all.messages;
    lies(posts as f64 / (f64::from(RANKS) * keys as f64), 0.98..=0.99);
    assert!(measured.all.bytes[1] <= PACKET_BYTES * posts);
    assert_eq!(measured.barriers(), 3);
    lies(measured.imbalance(), 1.1..=1.6);
}
