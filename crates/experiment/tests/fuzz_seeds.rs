//! Runs the fuzz targets on their seeds, whole and truncated, without a fuzzer. It is in this crate because this
//! crate depends on all parsers.

#![allow(unused_attributes, clippy::expect_used)] // compiled as fuzz programs, targets have no main

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/targets/disturbance.rs"]
mod disturbance;
#[path = "../../../fuzz/targets/experiment.rs"]
mod experiment;
#[path = "../../../fuzz/targets/farm_frames.rs"]
mod farm_frames;
#[path = "../../../fuzz/targets/filter_frames.rs"]
mod filter_frames;
#[path = "../../../fuzz/targets/foreign_lines.rs"]
mod foreign_lines;
#[path = "../../../fuzz/targets/goal.rs"]
mod goal;
#[path = "../../../fuzz/targets/hosts.rs"]
mod hosts;
#[path = "../../../fuzz/targets/links.rs"]
mod links;
#[path = "../../../fuzz/targets/measurement.rs"]
mod measurement;
#[path = "../../../fuzz/targets/plan.rs"]
mod plan;
#[path = "../../../fuzz/targets/platform.rs"]
mod platform;
#[path = "../../../fuzz/targets/probe_frames.rs"]
mod probe_frames;
#[path = "../../../fuzz/targets/rank_frames.rs"]
mod rank_frames;
#[path = "../../../fuzz/targets/recorded.rs"]
mod recorded;
#[path = "../../../fuzz/targets/runs.rs"]
mod runs;
#[path = "../../../fuzz/targets/strangers.rs"]
mod strangers;
#[path = "../../../fuzz/targets/tasks_file.rs"]
mod tasks_file;
#[path = "../../../fuzz/targets/trace.rs"]
mod trace;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("disturbance", disturbance::target),
    ("experiment", experiment::target),
    ("farm_frames", farm_frames::target),
    ("filter_frames", filter_frames::target),
    ("foreign_lines", foreign_lines::target),
    ("goal", goal::target),
    ("hosts", hosts::target),
    ("links", links::target),
    ("measurement", measurement::target),
    ("plan", plan::target),
    ("platform", platform::target),
    ("probe_frames", probe_frames::target),
    ("rank_frames", rank_frames::target),
    ("recorded", recorded::target),
    ("runs", runs::target),
    ("strangers", strangers::target),
    ("tasks_file", tasks_file::target),
    ("trace", trace::target),
];
const CUTS: usize = 64;

#[test]
fn every_seed_whole_or_cut_off_is_answered_without_a_panic() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (name, target) in TARGETS {
        let files: Vec<_> = fs::read_dir(seeds.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{name} has no seeds");
        for file in files {
            let seed = fs::read(&file).unwrap();
            target(&seed);
            for cut in 0..CUTS {
                target(&seed[..seed.len() * cut / CUTS]);
            }
        }
    }
    let rooms = fs::read_dir(&seeds).unwrap().count();
    assert_eq!(rooms, TARGETS.len(), "each folder of seeds has a target here");
}
