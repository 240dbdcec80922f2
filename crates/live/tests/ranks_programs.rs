//! Tests of the simulator's programs with real ranks: every result equals that of a plain computation.

use crate::scripted::run;
use crosswind_program::{Bsp, Cholesky, Column, Connect, Em3d, Program, Sample, Skeleton};
use crosswind_schema::experiment::parameters::NasParameters;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn parameters<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Runs a program without a limit, with the smallest window, and on a machine with daemons.
fn is_right_however_it_is_run<P: Program + Clone + Send + 'static>(program: &P) {
    let daemons = json!({
        "schema_version": 1, "name": "daemons",
        "source": [{"kind": "daemon", "interval_s": 0.01, "duration_s": 0.002, "polls": true}],
    });
    for more in [
        json!({}),
        json!({"policy": {"window_packets": 1}, "packet_bytes": 64}),
        json!({"policy": {"window_packets": 4, "credit": "extracted"}, "disturbance": daemons}),
    ] {
        let (outcome, each) = run(program, more.clone());
        let outcome = outcome.unwrap_or_else(|error| panic!("{more}: {error}"));
        each.into_iter().for_each(|rank| rank.unwrap());
        assert!(outcome.ranks.iter().all(|rank| rank.busy_s > 0.0), "{more}: {outcome:?}");
    }
}

#[test]
fn em3d_and_sample_sort_are_right() {
    let waves = parameters(json!({"nodes_per_rank": 30, "edges_per_node": 4, "remote": 0.3, "steps": 20}));
    is_right_however_it_is_run(&Em3d::new(&waves, 3, 1));
    is_right_however_it_is_run(&Sample::new(&parameters(json!({"keys_per_rank": 300, "samples_per_rank": 8})), 4, 2));
}

#[test]
fn column_sort_and_connected_components_are_right() {
    is_right_however_it_is_run(&Column::new(&parameters(json!({"keys_per_rank": 200})), 4, 3));
    is_right_however_it_is_run(&Connect::new(&parameters(json!({"vertices_per_rank": 60})), 3, 4));
}

#[test]
fn cholesky_and_supersteps_are_right() {
    let grid = parameters(json!({"grid_width": 6, "grid_length": 16, "panel_columns": 3, "matrices": 2}));
    is_right_however_it_is_run(&Cholesky::new(&grid, 4, 5));
    let steps = json!({"iterations": 50, "work_s": 1e-4, "dimensions": 2, "halo_bytes": 800, "allreduce_bytes": 24});
    is_right_however_it_is_run(&Bsp::of(&parameters(steps), 4));
}

#[test]
fn skeletons_of_nas_kernels_are_right() {
    let mg = NasParameters::Mg(parameters(json!({"side_log2": 5, "cycles": 2, "operation_s": 1e-9})));
    is_right_however_it_is_run(&Skeleton::new(&mg, 4));
    let ft = NasParameters::Ft(parameters(json!({"points_log2": 10, "iterations": 2, "operation_s": 1e-9})));
    is_right_however_it_is_run(&Skeleton::new(&ft, 3));
}
