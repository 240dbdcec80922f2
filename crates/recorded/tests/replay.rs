//! The evaluation of the graph against the simulator, and of the folded graph against it, to the nanosecond.

use crosswind_policy::window::WindowSettings;
use crosswind_recorded::folded::{self, Folded};
use crosswind_recorded::graph::{Do, Graph, Memory, Times};
use crosswind_recorded::judge::noise::Draws;
use crosswind_recorded::program::{LATENCY_NS, program};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::{Network, simulate};

/// Draws a program of ranks that meet, some operations beside the computing, one after the other.
fn drawn(seed: u64) -> (Graph, Times, Vec<i64>) {
    let mut draws = Draws(seed);
    let ranks = 2 + draws.below(4);
    let steps = 1 + draws.below(4);
    let mut does: Vec<Vec<Do>> = vec![Vec::new(); ranks];
    let (mut after, mut took) = (Vec::new(), Vec::new());
    let mut last = None;
    for step in 0..steps {
        let mut open = Vec::new();
        for _ in 0..1 + draws.below(4) {
            let meeting = after.len() as u32;
            took.push(2 + draws.below(5_000) as i64);
            if draws.below(3) == 0 {
                // A message: one arrives, another waits.
                after.push(None);
                let from = draws.below(ranks);
                does[from].push(Do::Arrive(meeting));
                does[(from + 1) % ranks].push(Do::Wait(meeting));
                continue;
            }
            after.push(if draws.below(2) == 0 { last } else { None });
            last = Some(meeting);
            does.iter_mut().for_each(|rank| rank.push(Do::Arrive(meeting)));
            if draws.below(2) == 0 {
                does.iter_mut().for_each(|rank| rank.push(Do::Wait(meeting)));
            } else {
                open.push(meeting);
            }
        }
        for rank in &mut does {
            rank.extend(open.iter().map(|&meeting| Do::Wait(meeting)));
            rank.push(Do::Nothing);
            rank.push(Do::Step(step as u32));
        }
    }
    // A meeting has at most one behind it.
    let mut taken = Vec::new();
    for before in &mut after {
        if before.is_some_and(|before: u32| taken.contains(&before)) {
            *before = None;
        }
        taken.extend(*before);
    }
    let cells: usize = does.iter().map(Vec::len).sum();
    let times = Times {
        computing: (0..cells).map(|_| draws.below(10_000) as i64).collect(),
        tail: (0..cells).map(|_| draws.below(300) as i64).collect(),
    };
    let starts = (0..ranks).map(|_| draws.below(4_000) as i64).collect();
    (Graph::new(&does, starts, after, steps as u32).unwrap(), times, took)
}

#[test]
fn the_simulator_replays_it_to_the_nanosecond() {
    let network = Network {
        latency_ns: LATENCY_NS,
        overhead_ns: 0,
        gap_ns: 0,
        gap_per_byte_ns: 0.0,
        packet_bytes: 1,
        acknowledgement_ns: 0,
        control_ns: 1,
        fat_tree: None,
    };
    for seed in 0..60 {
        let (graph, times, took) = drawn(seed);
        let goal = program(&graph, &times, &took).unwrap();
        let ranks = graph.starts.len() as u32 + graph.meetings;
        let window = WindowSettings::default();
        let simulated = simulate(&goal, &network, window, &Timelines::undisturbed(ranks), &mut |_| true).unwrap();
        let replayed = graph.replay(|_| &times, &took, &mut Memory::default());
        assert_eq!(simulated.makespan_ns as i64, replayed, "seed {seed}");
    }
}

#[test]
fn folding_ranks_changes_no_replay() {
    for seed in 0..400 {
        let (graph, own, took) = drawn(seed);
        let mut draws = Draws(seed + 1_000);
        let ranks = graph.starts.len();
        let kept: Vec<u32> = (0..ranks as u32).filter(|_| draws.below(3) == 0).collect();
        let folded = Folded::new(&graph, &own, &took, &kept);
        for _ in 0..4 {
            let other = Times {
                computing: own.computing.iter().map(|_| draws.below(20_000) as i64).collect(),
                tail: own.tail.iter().map(|_| draws.below(600) as i64).collect(),
            };
            let changed: Vec<u32> = kept.iter().copied().filter(|_| draws.below(2) == 0).collect();
            let times = |rank: u32| if changed.contains(&rank) { &other } else { &own };
            let (mut whole, mut part) = (Memory::default(), folded::Memory::default());
            let end = graph.replay(times, &took, &mut whole);
            assert_eq!(folded.replay(times, &mut part), end, "seed {seed}, kept {kept:?}, changed {changed:?}");
            assert_eq!(part.steps, whole.steps, "seed {seed}");
        }
    }
}
