//! Two binding constraints: the best flows under the port and one other constraint.
//!
//! A fractional knapsack with two constraints (E0-4: the paper's single-port rule considers only one). The other
//! constraint gets a price. At a given price the best flows follow a greedy rule, and the best price minimises the
//! dual, a convex function of the price alone. Cutting planes find it: given a price that is too low and one that is
//! too high, the tangents to the dual there meet at the next price to try. The search ends when the dual lies on both
//! lines. A mixture of the two flows then meets the constraint exactly and is optimal.

use super::ranking::{FEW, higher, highest_first};
use super::station::{Offer, Side};

/// Maximum number of prices tried before the search settles for its result and the bound proven so far. Ordinary
/// searches need fewer than 12.
const MOST_PRICES: usize = 200;

/// Working memory, reused from node to node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    keyed: Vec<(f64, u32)>,
    low: Vec<f64>,
    high: Vec<f64>,
    tried: Vec<f64>,
}

/// The outcome of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balanced {
    /// The sum of all `gain_i x_i`.
    pub won: f64,
    /// The sum of all `x_i`.
    pub sent: f64,
    /// Price of the other constraint per unit of its room, in units of `won`.
    pub side_price: f64,
    /// Price of the port, likewise.
    pub port_price: f64,
}

/// Result of the greedy rule at one price.
#[derive(Clone, Copy)]
struct Touch {
    won: f64,
    used: f64,
    port_price: f64,
}

impl Balance {
    /// Maximises `sum gain_i x_i` with `sum port_i x_i <= port_room`, `sum weight_i x_i <= side.room` and
    /// `0 <= x_i <= limit_i`; writes the flows.
    pub fn solve(&mut self, offers: &[Offer], port_room: f64, side: &Side, flows: &mut [f64]) -> Balanced {
        let count = offers.len();
        for buffer in [&mut self.low, &mut self.high, &mut self.tried] {
            buffer.resize(count, 0.0);
        }
        self.high.fill(0.0);
        self.keyed.clear();
        self.keyed.extend((0..count as u32).map(|at| (0.0, at))); // already sorted for the price 0
        let mut low = self.greedy(offers, port_room, side, 0.0);
        std::mem::swap(&mut self.low, &mut self.tried);
        let sum = |flows: &[f64]| flows.iter().sum::<f64>();
        if low.used <= side.room {
            flows.copy_from_slice(&self.low);
            return Balanced { won: low.won, sent: sum(flows), side_price: 0.0, port_price: low.port_price };
        }
        let mut high = Touch { won: 0.0, used: 0.0, port_price: 0.0 };
        let (mut price_low, mut price_high) = (0.0, f64::INFINITY);
        let (mut price, mut port_price) = (0.0, 0.0);
        let mut least = f64::INFINITY;
        for step in 0..MOST_PRICES {
            let meeting = (low.won - high.won) / (low.used - high.used);
            let on_line = low.won + meeting * (side.room - low.used);
            // In unusual cases, occasional halving of the bracket bounds the number of steps.
            let halve = step > 24 && step % 2 == 1 && price_high.is_finite();
            let next = if halve { 0.5 * (price_low + price_high) } else { meeting.max(price_low).min(price_high) };
            let touch = self.greedy(offers, port_room, side, next);
            let dual = touch.won + next * (side.room - touch.used);
            if dual < least {
                (least, price, port_price) = (dual, next, touch.port_price);
            }
            let rounding = 1e-15 * (low.won.abs() + meeting.abs() * (side.room + low.used));
            if !halve && dual <= on_line + rounding {
                (price, port_price) = (next, touch.port_price);
                break;
            }
            if touch.used > side.room {
                (low, price_low) = (touch, next);
                std::mem::swap(&mut self.low, &mut self.tried);
            } else {
                (high, price_high) = (touch, next);
                std::mem::swap(&mut self.high, &mut self.tried);
            }
        }
        let share = (side.room - high.used) / (low.used - high.used);
        for ((flow, &more), &less) in flows.iter_mut().zip(&self.low).zip(&self.high) {
            *flow = less + share * (more - less); // exact where both are equal
        }
        let won = high.won + share * (low.won - high.won);
        Balanced { won, sent: sum(flows), side_price: price, port_price }
    }

    /// Computes the best flows for `gain_i - price weight_i` under the port alone, into `tried`.
    fn greedy(&mut self, offers: &[Offer], port_room: f64, side: &Side, price: f64) -> Touch {
        self.tried.fill(0.0);
        for (key, at) in &mut self.keyed {
            let offer = &offers[*at as usize];
            *key = (offer.gain() - price * side.weight(offer)) * offer.per_port;
        }
        let mut touch = Touch { won: 0.0, used: 0.0, port_price: 0.0 };
        let mut room = port_room;
        let flows = &mut self.tried;
        let mut take = |at: u32, amount: f64| {
            let offer = &offers[at as usize];
            flows[at as usize] = amount;
            touch.won += offer.gain() * amount;
            touch.used += side.weight(offer) * amount;
        };
        let full = |at: u32| offers[at as usize].limit * offers[at as usize].port;
        let mut rest = &mut self.keyed[..];
        let many = |rest: &[_]| rest.len() > FEW && price > 0.0; // at the price 0 they are sorted already
        if many(rest) {
            rest = worthwhile(rest);
        }
        while many(rest) {
            let middle = rest.len() / 2;
            rest.select_nth_unstable_by(middle, higher);
            let (first, second) = rest.split_at_mut(middle);
            let needed: f64 = first.iter().map(|&(_, at)| full(at)).sum();
            if needed <= room {
                first.iter().for_each(|&(_, at)| take(at, offers[at as usize].limit));
                room -= needed;
                rest = second;
            } else {
                rest = first;
            }
        }
        highest_first(rest); // nearly sorted, by the last price
        for &(key, at) in rest.iter().take_while(|(key, _)| *key > 0.0) {
            let needed = full(at);
            if needed > room {
                take(at, room * offers[at as usize].per_port);
                touch.port_price = key;
                break;
            }
            take(at, offers[at as usize].limit);
            room -= needed;
        }
        touch
    }
}

/// Moves the entries with a key above 0 to the front, and returns them.
fn worthwhile(keyed: &mut [(f64, u32)]) -> &mut [(f64, u32)] {
    let mut count = 0;
    for at in 0..keyed.len() {
        if keyed[at].0 > 0.0 {
            keyed.swap(count, at);
            count += 1;
        }
    }
    &mut keyed[..count]
}
