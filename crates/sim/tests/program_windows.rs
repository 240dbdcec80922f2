//! The paper's statements about windows, checked on the programs themselves (scheduling-and-communication, section 3).
use std::num::NonZeroU32;

use crosswind_policy::window::WindowSettings;
use crosswind_program::{Cholesky, Program, Sample};
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::KnownNetwork;
use crosswind_schema::experiment::parameters::{CholeskyParameters, SampleParameters, Whole};
use crosswind_sim::program::{Network, Outcome, simulate};

const RANKS: u32 = 64;

fn dedicated<P: Program>(program: &P, packets: u32) -> Outcome<P::Rank> {
    let window = WindowSettings::of(NonZeroU32::new(packets).unwrap());
    let network = Network::of(&KnownNetwork::Cm5.network());
    let outcome = simulate(program, &network, window, &Timelines::undisturbed(RANKS), &mut |_| true).unwrap();
    program.check(&outcome.results()).unwrap();
    outcome
}

/// Returns the makespan with a window of `packets` relative to one that holds everything.
fn cost<P: Program>(program: &P, packets: u32) -> f64 {
    dedicated(program, packets).makespan_ns as f64 / dedicated(program, 512).makespan_ns as f64
}

#[test]
#[ignore = "long: make test-long"]
fn requiring_an_answer_does_for_cholesky_what_a_window_does() {
    let any = CholeskyParameters { matrices: Whole::fixed(20), ..Default::default() };
    let parameters = CholeskyParameters { sums_at_once: Whole::fixed(1), ..any.clone() };
    let program = Cholesky::new(&parameters, RANKS, 1);
    assert!((cost(&program, 2) - 1.0).abs() < 0.01);
    assert!((cost(&program, 1) - 1.0).abs() < 0.05, "{}", cost(&program, 1));
    // Without requiring an answer, a window of one packet stalls it.
    assert!(cost(&Cholesky::new(&any, RANKS, 1), 1) > 1.5);
}

#[test]
fn sample_computes_for_96_percent_of_its_time() {
    let parameters = SampleParameters { keys_per_rank: Whole::fixed(8_192), ..Default::default() };
    let program = Sample::new(&parameters, RANKS, 1);
    let outcome = dedicated(&program, 1);
    let busy: u64 = outcome.times.iter().map(|times| times.busy_ns).sum();
    // Each key is sent and handled, 2.2 us each. Acknowledgements cost the same again.
    let sent = outcome.totals.messages as f64 * 4_400.0;
    let computed = busy as f64 - 2.0 * sent;
    let part = computed / (computed + sent);
    assert!((0.94..=0.98).contains(&part), "{part}");
}
