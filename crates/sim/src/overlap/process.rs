//! Step sequences of processes: a burner, and the two ends of a ping.

use crosswind_schema::simulated_overlap::{RequestedCell, SimulatedOverlap, Wait};
use crosswind_schema::units::Quantity;

use crate::time::{Nanos, nanos};

/// The next step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Needs a processor for this long, ns.
    Compute(Nanos),
    /// Needs no processor for this long, ns.
    Sleep(Nanos),
    Send,
    Receive,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    /// Computes for `work` ns, then ends.
    Burn { work: Nanos, done: bool },
    /// Sends messages back and forth.
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

/// One end of a ping: start-up, preparation of its buffer, then its round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    first: bool,
    /// Remaining steps of start-up and of buffer preparation: how many, and the processor time and wait of each.
    preparations: [Repeated; 2],
    /// Processor time per message, ns.
    message: Nanos,
    rounds: u64,
    /// Position in a round trip.
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
    /// Creates the end that sends first, or the other.
    pub fn new(request: &SimulatedOverlap, cell: &RequestedCell, first: bool) -> Self {
        let (costs, network) = (&request.costs, &request.network);
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

/// What a process does while it holds a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Computes for this much longer, ns.
    Burst(Nanos),
    /// Polls for a message for this much longer, ns.
    Poll(Nanos),
}

/// How a process waits for a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub wait: Wait,
    /// Time it polls first if only processes of a worse nice level want the processor, ns.
    pub linger: Nanos,
    /// Time it polls first even if other processes want the processor, ns.
    pub spin: Nanos,
}

impl Waiting {
    pub fn of(request: &SimulatedOverlap, wait: Wait) -> Self {
        Self { wait, linger: nanos(request.costs.linger_s.get()), spin: nanos(request.costs.spin_s()) }
    }

    /// Returns how long it polls before it blocks, ns. `unwanted`: no process of its own nice level or a better one
    /// waits for the processor.
    pub fn polls_for(&self, unwanted: bool) -> Nanos {
        match self.wait {
            Wait::Event if unwanted => self.linger,
            Wait::Event | Wait::Buffered => 0,
            Wait::SpinBlock => self.spin,
            Wait::Poll => crate::time::NEVER,
        }
    }
}
