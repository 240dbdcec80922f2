//! A recorded program whose transfers take as long as recorded, for the simulator: the oracle of the replay.
//!
//! Each meeting is a rank of its own: it receives from all that arrive, there or at a meeting whose arrivals it needs, computes
//! the transfer, and sends to all that wait.
//! The network of the simulator then has to be free but for 1 ns of latency, which transfers of 2 ns and more contain.

use std::collections::BTreeMap;

use crosswind_program::Goal;
use crosswind_program::goal::build::{Builder, Operation};
use crosswind_recorded::graph::{After, Do, Graph, Times};

/// Latency of the simulated network, ns: the shortest that the simulator permits.
pub const LATENCY_NS: u64 = 1;

/// Returns the meetings that need the arrivals at a meeting: itself, and those after its arrivals.
fn needing(graph: &Graph, meeting: u32) -> Vec<u32> {
    let mut found = vec![meeting];
    for other in meeting + 1..graph.meetings {
        if let Some(After::Arrived(before)) = graph.after[other as usize]
            && found.contains(&before)
        {
            found.push(other);
        }
    }
    found
}

/// Returns the program: the ranks as recorded, then one rank for each meeting.
pub fn program(graph: &Graph, own: &Times, took: &[i64]) -> Goal {
    let ranks = graph.starts.len() as u32;
    let mut builder = Builder::new(ranks + graph.meetings);
    let mut last: Vec<Option<u32>> = vec![None; ranks as usize];
    let (mut arriving, mut waiting): (BTreeMap<u32, Vec<u32>>, BTreeMap<u32, Vec<u32>>) =
        (BTreeMap::new(), BTreeMap::new());
    for rank in 0..ranks {
        let ns = graph.starts[rank as usize].max(0) as u64;
        last[rank as usize] = Some(builder.add(rank, Operation::Calc { ns }, &[]));
    }
    for node in &graph.nodes {
        let (rank, cell) = (node.rank, node.cell as usize);
        let mut add = |operation| {
            let required: Vec<u32> = last[rank as usize].into_iter().collect();
            last[rank as usize] = Some(builder.add(rank, operation, &required));
        };
        add(Operation::Calc { ns: own.computing[cell].max(0) as u64 });
        let tail = Operation::Calc { ns: own.tail[cell].max(0) as u64 };
        match node.does {
            Do::Arrive(meeting) => {
                for needs in needing(graph, meeting) {
                    add(Operation::Send { to: ranks + needs, tag: 0, bytes: 1 });
                    arriving.entry(needs).or_default().push(rank);
                }
            }
            Do::Wait(meeting) => {
                add(Operation::Receive { from: Some(ranks + meeting), tag: 0 });
                add(tail);
                waiting.entry(meeting).or_default().push(rank);
            }
            Do::Nothing => add(tail),
            Do::Step(_) => {}
        }
    }
    let over = |meeting: u32| match graph.after[meeting as usize] {
        Some(After::Over(before)) => Some(before),
        Some(After::Arrived(_)) | None => None,
    };
    let next: BTreeMap<u32, u32> = (0..graph.meetings).filter_map(|one| Some((over(one)?, one))).collect();
    for meeting in 0..graph.meetings {
        let me = ranks + meeting;
        let mut required: Vec<u32> = arriving
            .get(&meeting)
            .into_iter()
            .flatten()
            .map(|&from| builder.add(me, Operation::Receive { from: Some(from), tag: 0 }, &[]))
            .collect();
        if let Some(before) = over(meeting) {
            required.push(builder.add(me, Operation::Receive { from: Some(ranks + before), tag: 0 }, &[]));
        }
        let ns = (took[meeting as usize].max(0) as u64).saturating_sub(2 * LATENCY_NS);
        let transfer = builder.add(me, Operation::Calc { ns }, &required);
        for &to in waiting.get(&meeting).into_iter().flatten() {
            builder.add(me, Operation::Send { to, tag: 0, bytes: 1 }, &[transfer]);
        }
        if let Some(&after) = next.get(&meeting) {
            // The next meeting's own two latencies hold only one of this message's.
            let pause = builder.add(me, Operation::Calc { ns: LATENCY_NS }, &[transfer]);
            builder.add(me, Operation::Send { to: ranks + after, tag: 0, bytes: 1 }, &[pause]);
        }
    }
    builder.build().expect("a schedule without circles")
}
