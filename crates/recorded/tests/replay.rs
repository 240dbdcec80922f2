//! The evaluation of the graph against the simulator, and of the folded graph against it, to the nanosecond.

use crosswind_policy::window::WindowSettings;
use crosswind_recorded::folded::{self, Folded};
use crosswind_recorded::graph::{After, Do, Graph, Memory, Times};
use crosswind_recorded::judge::noise::Draws;
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Timeline, Timelines};
use crosswind_sim::program::{Network, simulate};

use crate::meetings::{LATENCY_NS, program};

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
            if draws.below(3) == 0 {
                // A scan: each rank waits for those below it, some for those above as well.
                let first = meeting;
                for (rank, does) in does.iter_mut().enumerate() {
                    after.push((rank > 0).then(|| After::Arrived(first + rank as u32 - 1)));
                    does.push(Do::Arrive(first + rank as u32));
                    does.push(Do::Wait(first + (rank + draws.below(ranks - rank)) as u32));
                }
                took.extend((1..ranks).map(|_| 2 + draws.below(5_000) as i64));
                continue;
            }
            after.push(if draws.below(2) == 0 { last.map(After::Over) } else { None });
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
        if before.is_some_and(|before| matches!(before, After::Over(_)) && taken.contains(&before)) {
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

/// A network that costs nothing but its latency.
const NETWORK: Network = Network {
    latency_ns: LATENCY_NS,
    overhead_ns: 0,
    gap_ns: 0,
    gap_per_byte_ns: 0.0,
    packet_bytes: 1,
    acknowledgement_ns: 0,
    control_ns: 1,
    fat_tree: None,
};

#[test]
fn the_simulator_replays_it_to_the_nanosecond() {
    for seed in 0..60 {
        let (graph, times, took) = drawn(seed);
        let goal = program(&graph, &times, &took);
        let ranks = graph.starts.len() as u32 + graph.meetings;
        let window = WindowSettings::default();
        let simulated = simulate(&goal, &NETWORK, window, &Timelines::undisturbed(ranks), &mut |_| true).unwrap();
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

#[test]
fn so_it_does_on_disturbed_processors() {
    let mut slowed = 0;
    for seed in 0..60 {
        let (mut graph, times, took) = drawn(seed);
        graph.starts.fill(0);
        let goal = program(&graph, &times, &took);
        let ranks = graph.starts.len() as u32;
        let disturbed: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
        let text = format!(
            "schema_version = 1\nname = \"d\"\n[[source]]\nkind = \"daemon\"\nduration_s = 3e-6\nranks = [{}]\n\
             interval_s = {{ distribution = \"exponential\", mean = 8e-6 }}\n",
            disturbed.join(", ")
        );
        let disturbance = Disturbance::from_toml(text.as_bytes(), "d.toml").unwrap();
        let all = Timelines::new(&disturbance, ranks + graph.meetings, seed).unwrap();
        let simulated = simulate(&goal, &NETWORK, WindowSettings::default(), &all, &mut |_| true).unwrap();
        let own = Timelines::new(&disturbance, ranks, seed).unwrap();
        let mut processors: Vec<Timeline> = (0..ranks).map(|rank| own.rank(rank)).collect();
        let replayed = graph.replay_on(|_| &times, &took, &mut Memory::default(), &mut |rank, from, ns| {
            let processor = &mut processors[rank as usize];
            let on = processor.next_on(from as u64);
            processor.work(on, ns as u64) as i64
        });
        assert_eq!(simulated.makespan_ns as i64, replayed, "seed {seed}");
        slowed += i32::from(replayed > graph.replay(|_| &times, &took, &mut Memory::default()));
    }
    assert!(slowed > 40, "the disturbance does something: {slowed}");
}
