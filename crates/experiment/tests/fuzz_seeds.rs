//! The seeds of the fuzz targets, whole and cut off, without a fuzzer. Here since this crate depends on all that parse.

use std::fs;
use std::path::Path;

#[allow(unused_attributes, clippy::expect_used)] // as programs they have no main
mod targets {
    #[path = "../../../../fuzz/targets/disturbance.rs"]
    pub mod disturbance;
    #[path = "../../../../fuzz/targets/experiment.rs"]
    pub mod experiment;
    #[path = "../../../../fuzz/targets/farm_frames.rs"]
    pub mod farm_frames;
    #[path = "../../../../fuzz/targets/filter_frames.rs"]
    pub mod filter_frames;
    #[path = "../../../../fuzz/targets/foreign_lines.rs"]
    pub mod foreign_lines;
    #[path = "../../../../fuzz/targets/goal.rs"]
    pub mod goal;
    #[path = "../../../../fuzz/targets/hosts.rs"]
    pub mod hosts;
    #[path = "../../../../fuzz/targets/links.rs"]
    pub mod links;
    #[path = "../../../../fuzz/targets/measurement.rs"]
    pub mod measurement;
    #[path = "../../../../fuzz/targets/plan.rs"]
    pub mod plan;
    #[path = "../../../../fuzz/targets/platform.rs"]
    pub mod platform;
    #[path = "../../../../fuzz/targets/probe_frames.rs"]
    pub mod probe_frames;
    #[path = "../../../../fuzz/targets/rank_frames.rs"]
    pub mod rank_frames;
    #[path = "../../../../fuzz/targets/runs.rs"]
    pub mod runs;
    #[path = "../../../../fuzz/targets/strangers.rs"]
    pub mod strangers;
    #[path = "../../../../fuzz/targets/tasks_file.rs"]
    pub mod tasks_file;
    #[path = "../../../../fuzz/targets/trace.rs"]
    pub mod trace;
}

const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("disturbance", targets::disturbance::target),
    ("experiment", targets::experiment::target),
    ("farm_frames", targets::farm_frames::target),
    ("filter_frames", targets::filter_frames::target),
    ("foreign_lines", targets::foreign_lines::target),
    ("goal", targets::goal::target),
    ("hosts", targets::hosts::target),
    ("links", targets::links::target),
    ("measurement", targets::measurement::target),
    ("plan", targets::plan::target),
    ("platform", targets::platform::target),
    ("probe_frames", targets::probe_frames::target),
    ("rank_frames", targets::rank_frames::target),
    ("runs", targets::runs::target),
    ("strangers", targets::strangers::target),
    ("tasks_file", targets::tasks_file::target),
    ("trace", targets::trace::target),
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
