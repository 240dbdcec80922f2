//! One node and what its children can take: the terms of a node's optimum.
//!
//! In tasks per second. With C the node's compute rate, `rho = IR_r (Z + Z') C` and `cost_i = IR_i (Z + Z') C`, a node
//! that takes T and sends x_i to child i computes `S = T - sum x`, and must satisfy (interference-aware-scheduling,
//! section 3.2, with Z' the size of a result):
//!
//! 1. `S <= C - rho T - sum cost_i x_i`: what the law leaves of its compute rate;
//! 2. `T + drop sum x <= receive`: its link, which sending may slow (E0-5). Not at the root;
//! 3. `sum x <= T`: it computes no less than nothing;
//! 4. `sum port_i x_i <= send`: multi-port `port_i = 1` and the send limit, single-port `port_i = 1 / b_i` and 1;
//! 5. `0 <= x_i <= limit_i`: what the child's subtree can take;
//! 6. `x_i Z' <= b_i`: what its link, b_i MB/s, carries back. Each task returns one result along its way, beside inputs
//!    and at the interference of the same link, so (6) is a limit of (5), `limit_i = min(best_i, b_i / Z')`.
//!
//! Scaling all flows down keeps them feasible, so a subtree can do any rate up to its best, and the bottom-up solution
//! is exact.

use crosswind_schema::plan::Ports;

/// Relative excess over a constraint that rounding may cause.
pub(crate) const ROUNDING: f64 = 1e-13;

/// A node's own numbers, in tasks per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Station {
    pub compute: f64,
    /// Compute rate lost per task received, and its result returned, as a fraction of a task (IR_r (Z + Z') C).
    pub rho: f64,
    /// Receive limit, tasks/s. Infinite at the root.
    pub receive: f64,
    /// Receive limit lost per task sent.
    pub drop: f64,
    /// Room of the port: 1 for single-port, the send limit for multi-port, possibly infinite.
    pub send: f64,
    /// Tasks that the parent itself loses per task sent here, and its result: IR_s (Z + Z') C of the parent. 0 at the
    /// root.
    pub cost: f64,
}

/// A child that is worth sending to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Index of the child among all nodes.
    pub child: u32,
    /// Tasks that the node itself loses per task sent, and its result: IR_i (Z + Z') C, below 1.
    pub cost: f64,
    /// Room of the port per task.
    pub port: f64,
    /// Tasks per room of the port: 1 / port.
    pub per_port: f64,
    /// Maximum tasks per second that the child's subtree can take and return.
    pub limit: f64,
}

impl Offer {
    /// Creates the offer of a child behind a link of `receive` tasks/s.
    pub fn new(child: u32, cost: f64, receive: f64, limit: f64, ports: Ports) -> Self {
        let (port, per_port) = if ports == Ports::Single { (1.0 / receive, receive) } else { (1.0, 1.0) };
        Self { child, cost, port, per_port, limit }
    }

    /// Returns the tasks gained per room of the parent's port, the paper's priority. For multi-port sends this is the
    /// order of lowest interference rates.
    pub fn priority(&self) -> f64 {
        self.gain() * self.per_port
    }

    /// Returns the tasks gained per task sent.
    pub fn gain(&self) -> f64 {
        1.0 - self.cost
    }
}

/// A constraint on `sum (base + cost_share cost_i) x_i` other than the port's.
///
/// With (1) tight, (2) and (3) no longer involve T, only the flows: `sum x_i (1 + rho - gain_i) <= C` and
/// `sum x_i (gain_i + drop (1 + rho)) <= (1 + rho) receive - C`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    cost_share: f64,
    base: f64,
    pub room: f64,
}

/// Which of the two constraints a [`Side`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SideKind {
    #[default]
    Receive,
    Local,
}

impl Side {
    /// Returns the room that a task per second to this child takes.
    pub fn weight(&self, offer: &Offer) -> f64 {
        self.base + self.cost_share * offer.cost
    }
}

impl Station {
    /// Returns the compute rate that a task takes, including its own reception.
    pub fn per_task(&self) -> f64 {
        1.0 + self.rho
    }

    /// Returns the tasks that a unit of the compute rate does, including reception.
    pub fn unit(&self) -> f64 {
        1.0 / (1.0 + self.rho)
    }

    /// Returns the rate with no child served and no limit on receiving.
    pub fn alone(&self) -> f64 {
        self.compute * self.unit()
    }

    /// Returns constraint (2) or (3) in terms of the flows alone.
    pub fn side(&self, kind: SideKind) -> Side {
        match kind {
            SideKind::Local => Side { cost_share: 1.0, base: self.rho, room: self.compute },
            SideKind::Receive => Side {
                cost_share: -1.0,
                base: 1.0 + self.drop * self.per_task(),
                room: self.per_task() * self.receive - self.compute,
            },
        }
    }

    /// Whether a node that takes `rate` may send `sent` in total by (2) and (3), up to rounding.
    pub fn allows(&self, rate: f64, sent: f64) -> bool {
        // Written as sums: `(receive - rate) / drop` would cancel, with an error that grows without limit as the drop
        // falls.
        let rounding = 1.0 + ROUNDING;
        sent <= rate * rounding && rate + self.drop * sent <= self.receive * rounding
    }
}

/// Gain of the node for one more unit of each constraint, in tasks per second: a dual solution of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prices {
    /// Price of (1), per task/s of compute rate.
    pub compute: f64,
    /// Price of (2), per task/s of receive limit.
    pub receive: f64,
    /// Price of (3), per unit of its room.
    pub local: f64,
    /// Price of (4), per unit of the port's room.
    pub send: f64,
}

impl Prices {
    /// Converts the prices of a side constraint and of the port, which are in units of (1).
    pub fn of(station: &Station, best: &Best) -> Self {
        let (unit, price, send) = (station.unit(), best.side_price, best.port_price * station.unit());
        match best.side {
            SideKind::Local => Self { compute: (1.0 + price) * unit, local: price, send, ..Self::default() },
            SideKind::Receive => {
                Self { compute: (1.0 - price).max(0.0) * unit, receive: price, send, ..Self::default() }
            }
        }
    }

    /// Returns the gain of the node for one more task/s of a child's subtree.
    pub fn reduced(&self, station: &Station, offer: &Offer) -> f64 {
        // Equals compute gain - receive drop - local - send port, without the cancellation of 1 + rho - gain.
        match self.local > 0.0 {
            true => 1.0 - self.compute * (station.rho + offer.cost) - self.send * offer.port,
            false => self.compute * offer.gain() - self.receive * station.drop - self.send * offer.port,
        }
    }

    /// Returns the dual's value without its children's part: an upper bound of the node's rate.
    pub fn own_bound(&self, station: &Station) -> f64 {
        let finite = |price: f64, room: f64| if price > 0.0 { price * room } else { 0.0 };
        self.compute * station.compute + finite(self.receive, station.receive) + finite(self.send, station.send)
    }
}

/// The constraint that ends a node's service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Every worthwhile child gets all that it can take.
    #[default]
    Filled,
    /// Constraint (2) of the linear program.
    Receive,
    /// Constraint (3) of the linear program.
    Local,
    /// Constraint (4) of the linear program.
    Port,
}

/// A node's best rate, and what limits it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Best {
    pub rate: f64,
    pub stop: Stop,
    /// The binding constraint besides the port, if there is one, and its price per unit of the flows' weights, in tasks
    /// gained.
    pub side: SideKind,
    pub side_price: f64,
    /// Tasks gained per room of the port.
    pub port_price: f64,
}

impl Best {
    /// Returns the case in which the link's limit is the rate, whatever the node sends.
    pub fn of_link(station: &Station) -> Self {
        Self { rate: station.receive, stop: Stop::Receive, side: SideKind::Receive, side_price: 1.0, port_price: 0.0 }
    }
}
