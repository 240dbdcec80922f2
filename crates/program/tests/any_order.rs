//! Every program gives the right result in any order of its ranks and messages.

use crosswind_program::{Cholesky, Column, Connect, Em3d, Program, Sample, plain};
use crosswind_schema::experiment::parameters::{
    CholeskyParameters, ColumnParameters, ConnectParameters, Cost, Em3dParameters, Part, SampleParameters, Whole,
};
use proptest::prelude::*;

fn is_right<P: Program>(program: &P, order: u64) -> Result<plain::Outcome, TestCaseError> {
    let outcome = plain::run(program, order).map_err(|stuck| TestCaseError::fail(stuck.to_string()))?;
    program.check(&outcome.results).map_err(TestCaseError::fail)?;
    Ok(outcome)
}

/// Returns what each rank computes and sends, which depends on the program and not on the order. The number of wake-ups
/// does depend on the order.
fn did(outcome: &plain::Outcome) -> Vec<(u64, [u64; 5], [u64; 5], u64)> {
    outcome.tallies.iter().map(|tally| (tally.compute_ns, tally.messages, tally.bytes, tally.barriers)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn em3d_computes_the_fields_of_the_plain_loop_to_the_last_bit(
        (ranks, seed, order) in (1u32..12, any::<u64>(), any::<u64>()),
        (nodes, degree, remote, steps) in (1u64..30, 1u64..8, 0.0..=1.0, 1u64..6),
    ) {
        let parameters = Em3dParameters {
            nodes_per_rank: Whole::new(nodes).unwrap(),
            edges_per_node: Whole::new(degree).unwrap(),
            remote: Part::new(remote).unwrap(),
            steps: Whole::new(steps).unwrap(),
            operation_s: Cost::new(2e-6).unwrap(),
        };
        let program = Em3d::new(&parameters, ranks, seed);
        let outcome = is_right(&program, order)?;
        prop_assert_eq!(did(&outcome), did(&is_right(&program, order ^ 1)?));
        prop_assert!(outcome.tallies.iter().all(|tally| tally.barriers == 1 + 2 * steps));
    }

    #[test]
    fn cholesky_factors_are_those_of_a_plain_factorisation(
        (ranks, seed, order) in (1u32..12, any::<u64>(), any::<u64>()),
        (width, length, panel, matrices, at_once) in (1u64..8, 1u64..40, 1u64..6, 1u64..5, 1u64..4),
    ) {
        let parameters = CholeskyParameters {
            grid_width: Whole::new(width).unwrap(),
            grid_length: Whole::new(length).unwrap(),
            panel_columns: Whole::new(panel).unwrap(),
            matrices: Whole::new(matrices).unwrap(),
            matrices_at_once: Whole::new(at_once).unwrap(),
            ..Default::default()
        };
        let program = Cholesky::new(&parameters, ranks, seed);
        let outcome = is_right(&program, order)?;
        let again = is_right(&program, order ^ 1)?;
        prop_assert_eq!(did(&outcome), did(&again));
    }

    #[test]
    fn column_sort_sorts((ranks, seed, order, more) in (1u32..10, any::<u64>(), any::<u64>(), 1u64..50)) {
        let least = 2 * u64::from(ranks - 1).pow(2);
        let parameters = ColumnParameters { keys_per_rank: Whole::new(least + more).unwrap(), ..Default::default() };
        prop_assert!(parameters.check(ranks).is_ok());
        let program = Column::new(&parameters, ranks, seed);
        let outcome = is_right(&program, order)?;
        prop_assert!(outcome.tallies.iter().all(|tally| tally.barriers == 8));
        prop_assert_eq!(outcome.tallies, is_right(&program, order ^ 1)?.tallies);
    }

    #[test]
    fn connected_components_are_those_of_a_plain_search(
        (ranks, seed, order) in (1u32..12, any::<u64>(), any::<u64>()),
        (vertices, edges, tilt, batch, left) in (1u64..60, 0u64..4, 0.0..=1.0, 1u64..40, 0u64..60),
    ) {
        let parameters = ConnectParameters {
            vertices_per_rank: Whole::new(vertices).unwrap(),
            edges_per_vertex: Whole::new(edges).unwrap(),
            tilt: Part::new(tilt).unwrap(),
            gets_per_sync: Whole::new(batch).unwrap(),
            edges_left_to_one: Whole::new(left).unwrap(),
            ..Default::default()
        };
        let program = Connect::new(&parameters, ranks, seed);
        let outcome = is_right(&program, order)?;
        let again = is_right(&program, order ^ 1)?;
        let sent = |outcome: &plain::Outcome| outcome.tallies.iter().map(|t| t.messages).collect::<Vec<_>>();
        prop_assert_eq!(sent(&outcome), sent(&again));
        prop_assert_eq!(outcome.results, again.results);
    }

    #[test]
    fn sample_sort_sorts(
        (ranks, seed, order) in (1u32..20, any::<u64>(), any::<u64>()),
        (keys, samples) in (1u64..200, 1u64..20),
    ) {
        let parameters = SampleParameters {
            keys_per_rank: Whole::new(keys).unwrap(),
            samples_per_rank: Whole::new(samples).unwrap(),
            ..SampleParameters::default()
        };
        let program = Sample::new(&parameters, ranks, seed);
        prop_assert_eq!(is_right(&program, order)?.tallies, is_right(&program, order ^ 1)?.tallies);
    }
}

#[test]
fn a_result_that_is_not_right_is_refused() {
    let em3d = Em3d::new(&Em3dParameters { steps: Whole::fixed(2), ..Em3dParameters::default() }, 3, 1);
    let mut results = plain::run(&em3d, 1).unwrap().results;
    results[2][7] ^= 1;
    assert!(em3d.check(&results).unwrap_err().starts_with("node 7 of rank 2 is"));
    let sample = Sample::new(&SampleParameters { keys_per_rank: Whole::fixed(50), ..Default::default() }, 3, 1);
    let mut results = plain::run(&sample, 1).unwrap().results;
    results[1].swap(0, 1);
    assert!(sample.check(&results).unwrap_err().contains("at rank 1"));
}
