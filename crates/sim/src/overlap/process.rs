//! What a process does, step by step: a burner, and the two ends of a ping.

use crosswind_schema::simulated_overlap::{AskedCell, SimulatedOverlap, Wait};
use crosswind_schema::units::Quantity;

use crate::time::{Nanos, nanos};

/// The next thing that a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It needs a processor for so long.
    Compute(Nanos),
    /// It wants no processor for so long.
    Sleep(Nanos),
    Send,
    /// It waits for a message.
    Receive,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    /// It computes for so long.
    Burn { work: Nanos, done: bool },
    /// It sends messages back and forth.
    Ping(Ping),
}

impl Program {
    pub fn next(&mut self) -> Step {
        match self {
            Self::Burn { work, done: done @ false } => {
                *done = true;
                Step::Compute(*work)
            }
            Self::Burn { .. } => Step::End,
            Self::Ping(ping) => ping.next(),
        }
    }
}

/// One end of a ping: it starts, prepares its buffer, and makes its round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    first: bool,
    /// Steps of start and buffer still to do: how many, processor time and waiting of each.
    preparations: [Repeated; 2],
    /// Processor time for a message.
    message: Nanos,
    rounds: u64,
    /// Place in a round trip.
    at: usize,
    waits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Repeated {
    times: u64,
    compute: Nanos,
    sleep: Nanos,
}

impl Repeated {
    fn of(steps: f64, compute_s: f64, sleep_s: f64) -> Self {
        let times = steps.round().max(1.0);
        Self { times: times as u64, compute: nanos(compute_s / times), sleep: nanos(sleep_s / times) }
    }
}

const FIRST: [Step; 4] = [Step::Compute(0), Step::Send, Step::Receive, Step::Compute(0)];
const SECOND: [Step; 4] = [Step::Receive, Step::Compute(0), Step::Compute(0), Step::Send];

impl Ping {
    /// The end that sends first, or the other.
    pub fn new(asked: &SimulatedOverlap, cell: &AskedCell, first: bool) -> Self {
        let (costs, network) = (&asked.costs, &asked.network);
        let mb = cell.message_bytes as f64 / 1e6;
        let start = Repeated::of(costs.start_steps.into(), costs.start_cpu_s.get(), costs.start_wait_s.get());
        let steps = costs.prepare_steps_per_mb * mb;
        let buffer = Repeated::of(steps, costs.prepare_cpu_s_per_mb.get() * mb, costs.prepare_wait_s_per_mb.get() * mb);
        Self {
            first,
            preparations: [start, buffer],
            message: nanos(network.message_cpu_s.get() + network.cpu_s_per_mb.get() * mb),
            rounds: cell.messages,
            at: 0,
            waits: false,
        }
    }

    fn next(&mut self) -> Step {
        for part in &mut self.preparations {
            if part.times > 0 {
                self.waits = !self.waits;
                if self.waits {
                    return Step::Compute(part.compute);
                }
                part.times -= 1;
                return Step::Sleep(part.sleep);
            }
        }
        if self.rounds == 0 {
            return Step::End;
        }
        let step = if self.first { FIRST } else { SECOND }[self.at];
        self.at = (self.at + 1) % FIRST.len();
        if self.at == 0 {
            self.rounds -= 1;
        }
        if step == Step::Compute(0) { Step::Compute(self.message) } else { step }
    }
}

/// What a process on a processor does there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// It computes for so much longer.
    Burst(Nanos),
    /// It asks for a message, for so much longer.
    Poll(Nanos),
}

/// How a process waits for a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub wait: Wait,
    /// How long it polls first, if only worse processes want the processor.
    pub linger: Nanos,
    /// How long it polls first, even if other processes want the processor.
    pub spin: Nanos,
}

impl Waiting {
    pub fn of(asked: &SimulatedOverlap, wait: Wait) -> Self {
        Self { wait, linger: nanos(asked.costs.linger_s.get()), spin: nanos(asked.costs.spin_s()) }
    }

    /// How long it keeps its processor; `unwanted`: no process of its own nice level or a better one waits for it.
    pub fn polls_for(&self, unwanted: bool) -> Nanos {
        match self.wait {
            Wait::Event if unwanted => self.linger,
            Wait::Event | Wait::Buffered => 0,
            Wait::SpinBlock => self.spin,
            Wait::Poll => crate::time::NEVER,
        }
    }
}
