//! Exact optimum of a node with a single port.
//!
//! If the paper's order ends at the port or has served all, it is optimal. If it ends at (3), or at (2) with a drop
//! (E0-5), a second constraint binds besides the port (E0-4), but never both. The maximum sent at the rate T is
//! `min(T, (receive - T) / drop)`, whose terms meet at `T* = receive / (1 + drop)`. If the best flows under the port
//! and (3) alone violate (2), their rate lies above T*. Then T* is feasible and the best rate under (2) is at least T*,
//! where (2) is the smaller term: flows that satisfy it satisfy (3). The reverse case is symmetric.

use super::balance::{Balance, Balanced};
use super::serve::{rate, serve};
use super::station::{Best, Offer, SideKind, Station, Stop};

/// Returns the best rate of a node and writes the flows. `offers` must be sorted by priority.
pub(crate) fn best(station: &Station, offers: &[Offer], balance: &mut Balance, flows: &mut [f64]) -> Best {
    let served = serve(station, offers, flows);
    let (likelier, other) = match served.stop {
        Stop::Filled | Stop::Port => return served,
        Stop::Receive if station.drop == 0.0 || station.alone() >= station.receive => return served,
        Stop::Receive => (SideKind::Receive, SideKind::Local),
        Stop::Local => (SideKind::Local, SideKind::Receive),
    };
    if cheapest_are_served(offers, flows) {
        return served;
    }
    let (found, at) = under(station, likelier, offers, balance, flows);
    if station.drop == 0.0 && found.rate > station.receive {
        // The link allows less, whatever is sent: all flows are scaled down in proportion.
        let wanted = station.per_task() * station.receive - station.compute;
        flows.iter_mut().for_each(|flow| *flow *= wanted / at.won);
        return Best::of_link(station);
    }
    if station.allows(found.rate, at.sent) {
        return found;
    }
    under(station, other, offers, balance, flows).0
}

/// Whether the children served are those of least cost. Then the port plays no part in what ended the service, and the
/// flows are optimal under the other constraint alone. Gain per room of (2) and of (3) both fall with the cost.
fn cheapest_are_served(offers: &[Offer], flows: &[f64]) -> bool {
    let Some(last) = offers.iter().zip(flows).position(|(offer, &flow)| flow < offer.limit) else { return true };
    let cost = offers[last].cost;
    offers[..last].iter().all(|o| o.cost <= cost) && offers[last + 1..].iter().all(|o| o.cost >= cost)
}

/// Returns the best rate under the port and one other constraint.
fn under(
    station: &Station,
    kind: SideKind,
    offers: &[Offer],
    balance: &mut Balance,
    flows: &mut [f64],
) -> (Best, Balanced) {
    let at = balance.solve(offers, station.send, &station.side(kind), flows);
    let stop = match (kind, at.side_price > 0.0) {
        (SideKind::Local, true) => Stop::Local,
        (SideKind::Receive, true) => Stop::Receive,
        (_, false) if at.port_price > 0.0 => Stop::Port,
        (_, false) => Stop::Filled,
    };
    let rate = match kind {
        SideKind::Local => (station.compute + at.won) * station.unit(),
        SideKind::Receive => rate(station, at.won, at.sent),
    };
    (Best { rate, stop, side: kind, side_price: at.side_price, port_price: at.port_price }, at)
}

/// Returns the key of the order of service that the exact flows follow: gain less the other constraint's price, per
/// room of the port.
pub(crate) fn priority(station: &Station, offer: &Offer, kind: SideKind, price: f64) -> f64 {
    (offer.gain() - price * station.side(kind).weight(offer)) * offer.per_port
}
