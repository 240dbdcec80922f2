//! Schedules generated from a seed: a tree, tasks, and timed faults. They are plain data, so that a shrunk schedule is
//! a schedule too.

use crate::random::Random;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// Behaviour of a task when it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Works,
    /// Fails this many times on an agent, then succeeds.
    Fails(u32),
    Hangs,
    Kills,
}

#[derive(Clone, Copy, Debug)]
pub struct TaskPlan {
    pub task: u64,
    /// Time at which the user has it, ns from the start.
    pub at_ns: u64,
    /// Size of its input and of its result, bytes.
    pub bytes: (u64, u64),
    /// Duration of one attempt, ns.
    pub takes_ns: u64,
    pub deed: Deed,
}

#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Index of its parent. `None`: the root.
    pub parent: Option<usize>,
    pub computes: bool,
    /// Whether it is missing from the platform, so that it joins with its own rates.
    pub guest: bool,
    /// Time at which it first dials, ns.
    pub comes_ns: u64,
    /// Latency of its uplink, ns.
    pub latency_ns: u64,
    /// Bandwidth of its uplink, bytes per ms.
    pub bytes_per_ms: u64,
    /// Offset of its clock, ns.
    pub clock_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The process is killed and restarts after a while. The other ends are notified, or must detect it themselves.
    Killed {
        /// Time until it restarts, ns. 0: never.
        again_ns: u64,
        /// Whether the other ends are notified.
        notified: bool,
    },
    /// The process is stopped for a while.
    Stopped {
        for_ns: u64,
    },
    /// The connection to the parent is cut once it has carried the given number of bytes in either direction.
    Cut {
        /// Bytes towards the parent, and towards the child.
        after: (u64, u64),
        /// Whether the ends are notified.
        notified: bool,
    },
    /// The link to the parent is slower by a factor for a while.
    Slow {
        times: u64,
        for_ns: u64,
    },
    /// The agent is asked to leave `times` times, and restarts after a while.
    Leaves {
        times: usize,
        /// Time until it restarts, ns. 0: never.
        again_ns: u64,
    },
    /// The agent cannot store what it receives for a while. If a task or a result arrives, it ends and restarts.
    DiskFull {
        for_ns: u64,
    },
    /// At the root: no tasks are taken from the user for a while, as with a slow disk.
    DiskSlow {
        for_ns: u64,
    },
    /// The clock stands still for a while.
    ClockStands {
        for_ns: u64,
    },
    ClockJumps {
        by_ns: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Time, ns from the start.
    pub at_ns: u64,
    pub node: usize,
    pub trouble: Trouble,
}

/// Everything that a seed generates.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The seed, also of random decisions during the run, such as where bytes are fragmented.
    pub seed: u64,
    /// The tree: the root first, parents before children.
    pub nodes: Vec<NodePlan>,
    /// The tasks in the order of their times.
    pub tasks: Vec<TaskPlan>,
    pub faults: Vec<Fault>,
    /// Requests of the user to withdraw a task: the time, ns from the start, and the task.
    pub recalls: Vec<(u64, u64)>,
    pub policy: String,
    /// Number of retries of a failed task.
    pub retries: u32,
    /// Time limit of a task, ns. 0: none.
    pub timeout_ns: u64,
    /// Heartbeat interval, silence limit, and patience at the start, ms.
    pub beats_ms: (u64, u64, u64),
}

const ORDERS: [&str; 5] = ["interference", "bandwidth", "compute", "arrival", "planned"];

impl Schedule {
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = Random::new(seed, 1);
        let count = random.between(2, 9) as usize;
        let clock = |random: &mut Random| random.between(1, 1 << 45);
        let mut nodes = vec![NodePlan {
            parent: None,
            computes: random.chance(200),
            guest: false,
            comes_ns: 0,
            latency_ns: 0,
            bytes_per_ms: 0,
            clock_ns: clock(&mut random),
        }];
        for place in 1..count {
            let wide = random.chance(500);
            let parent = if wide { 0 } else { random.between(0, place as u64) as usize };
            // The platform does not list a late joiner, so it has no children.
            let parent = if nodes[parent].guest { 0 } else { parent };
            let guest = random.chance(150);
            let late = random.chance(200);
            nodes.push(NodePlan {
                parent: Some(parent),
                computes: guest || random.chance(850),
                guest,
                comes_ns: random.between(0, if late { 6_000 } else { 100 }) * MS,
                latency_ns: random.between(10_000, 20 * MS),
                bytes_per_ms: random.between(1 << 10, 1 << 20),
                clock_ns: clock(&mut random),
            });
        }
        if !nodes.iter().any(|node| node.computes) {
            nodes[count - 1].computes = true;
        }
        // Nothing could end a task that the root itself computes.
        let (retries, timeout_ns) =
            (random.between(0, 3) as u32, if !nodes[0].computes && random.chance(400) { 1_500 * MS } else { 0 });
        let mut at_ns = 0;
        let tasks = (0..random.between(1, 80)).map(|task| {
            if random.chance(100) {
                at_ns += random.between(0, 3_000) * MS;
            }
            let large = random.chance(100);
            let sizes = if large { 60_000 } else { 3_000 };
            let deed = match random.between(0, 100) {
                0..=3 => Deed::Fails(random.between(1, 4) as u32),
                4 if timeout_ns > 0 => Deed::Hangs,
                5 if !nodes[0].computes => Deed::Kills,
                _ => Deed::Works,
            };
            let bytes = (random.between(0, sizes), random.between(8, sizes));
            TaskPlan { task, at_ns, bytes, takes_ns: random.between(0, 200) * MS, deed }
        });
        let tasks: Vec<TaskPlan> = tasks.collect();
        let calm = random.chance(100);
        let faults = if calm { 0 } else { random.between(1, 12) };
        let faults = (0..faults).map(|_| Fault::drawn(count, &mut random)).collect();
        let order = ORDERS[random.between(0, ORDERS.len() as u64) as usize];
        let ports = if random.chance(500) { "single" } else { "multi" };
        let (adapt, level) = (random.chance(400), random.chance(600));
        let buffer =
            if random.chance(300) { format!(", \"buffer_tasks\": {}", random.between(1, 9)) } else { String::new() };
        let policy = format!(
            "{{\"order\": \"{order}\", \"ports\": \"{ports}\", \"chunk_kib\": {}, \"adapt\": {adapt}, \"level_end\": {level}{buffer}}}",
            random.between(1, 33)
        );
        let recalls = Self::recalls(seed, &tasks);
        let heartbeat_ms = random.between(100, 500);
        let beats_ms = (heartbeat_ms, (heartbeat_ms * 4).max(1_000), random.between(2_000, 6_000));
        Self { seed, nodes, tasks, faults, recalls, policy, retries, timeout_ns, beats_ms }
    }

    /// Draws requests to withdraw tasks, in a third of the schedules: of some tasks, or of most of them at once.
    /// Whether a task is a batch of calls, which passes on outcomes early.
    #[must_use]
    pub fn is_batch(&self, task: u64) -> bool {
        (self.seed ^ task.wrapping_mul(0x9e37_79b9)) % 3 == 0
    }

    fn recalls(seed: u64, tasks: &[TaskPlan]) -> Vec<(u64, u64)> {
        let mut random = Random::new(seed, 3);
        if !random.chance(333) {
            return Vec::new();
        }
        let (at_once, share) = (random.chance(500), if random.chance(500) { 900 } else { 200 });
        let all_at_ns = random.between(0, 4_000) * MS;
        let at_ns = |random: &mut Random| if at_once { all_at_ns } else { random.between(0, 8_000_000) * 1_000 };
        let recalled = tasks.iter().map(|task| (at_ns(&mut random), task.task, random.chance(share)));
        recalled.filter(|(.., is_recalled)| *is_recalled).map(|(at, task, _)| (at, task)).collect()
    }

    /// Whether nothing in the schedule can leave the root without agents for a while.
    #[must_use]
    pub fn is_gentle(&self) -> bool {
        let all_come = self.nodes.iter().all(|node| node.comes_ns < SECOND);
        self.faults.is_empty()
            && all_come
            && !self.tasks.iter().any(|task| matches!(task.deed, Deed::Kills | Deed::Hangs))
    }

    /// Time at which the last scheduled event is over, ns.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        let tasks = self.tasks.iter().map(|task| task.at_ns);
        let nodes = self.nodes.iter().map(|node| node.comes_ns);
        let faults = self.faults.iter().map(|fault| fault.at_ns + fault.trouble.lasts_ns());
        let recalls = self.recalls.iter().map(|(at_ns, _)| *at_ns);
        tasks.chain(nodes).chain(faults).chain(recalls).max().unwrap_or(0)
    }
}

impl Trouble {
    /// How long the fault lasts, ns.
    #[must_use]
    pub fn lasts_ns(self) -> u64 {
        match self {
            Self::Killed { again_ns, .. } | Self::Leaves { again_ns, .. } => again_ns,
            Self::Stopped { for_ns }
            | Self::Slow { for_ns, .. }
            | Self::DiskFull { for_ns }
            | Self::DiskSlow { for_ns }
            | Self::ClockStands { for_ns } => for_ns,
            Self::Cut { .. } => 0,
            Self::ClockJumps { by_ns } => by_ns,
        }
    }
}

impl Fault {
    fn drawn(nodes: usize, random: &mut Random) -> Self {
        let at_ns = random.between(0, 8_000) * MS + random.between(0, MS);
        let for_ns = random.between(1, 3_000) * MS;
        let any = random.between(0, nodes as u64) as usize;
        let below = random.between(1, nodes as u64) as usize;
        let (node, trouble) = match random.between(0, 100) {
            0..20 => {
                let again_ns = if random.chance(200) { 0 } else { random.between(1, 3_000) * MS };
                (below, Trouble::Killed { again_ns, notified: random.chance(700) })
            }
            20..25 => (0, Trouble::Killed { again_ns: random.between(1, 3_000) * MS, notified: random.chance(700) }),
            25..40 => (any, Trouble::Stopped { for_ns }),
            40..58 => {
                let after = (random.between(0, 20_000), random.between(0, 60_000));
                (below, Trouble::Cut { after, notified: random.chance(700) })
            }
            58..68 => (below, Trouble::Slow { times: random.between(2, 200), for_ns }),
            68..82 => {
                let again_ns = if random.chance(500) { 0 } else { random.between(1, 3_000) * MS };
                (below, Trouble::Leaves { times: if random.chance(100) { 2 } else { 1 }, again_ns })
            }
            82..88 => (below, Trouble::DiskFull { for_ns: for_ns / 4 }),
            88..92 => (0, Trouble::DiskSlow { for_ns }),
            92..96 => (any, Trouble::ClockStands { for_ns }),
            _ => (any, Trouble::ClockJumps { by_ns: for_ns }),
        };
        Self { at_ns, node, trouble }
    }
}
