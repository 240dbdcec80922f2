//! The exact optimum of a node with a single port.
//!
//! Where the paper's order ends at the port or has served everybody, it is optimal. Where it ends at (3), or at (2) with
//! a drop (E0-5), a second constraint counts besides the port (E0-4). The best rate under the port and (3) is one
//! program, that under the port and (2) another, and the optimum is the smaller of the two: what may be sent in all,
//! `min(T, (receive - T) / drop)`, is the smaller of two terms, and "is T possible?" is yes below each term's best.

use super::balance::{Balance, Balanced};
use super::serve::{rate, serve};
use super::station::{Best, Offer, Prices, SideKind, Station, Stop};

/// Relative excess that rounding may cause.
const ROUNDING: f64 = 1e-13;

/// The best rate of a node; `offers` stand in the order of priority. Writes the flows.
///
/// The second value is the price of the other constraint when the order by [`Offer::priority`] is not the optimal one.
pub(crate) fn best(
    station: &Station,
    offers: &[Offer],
    balance: &mut Balance,
    flows: &mut [f64],
) -> (Best, Option<(SideKind, f64)>) {
    let served = serve(station, offers, flows);
    let at_once = match served.stop {
        Stop::Filled | Stop::Port => true,
        Stop::Receive => station.drop == 0.0 || station.alone() >= station.receive,
        Stop::Local => false,
    };
    if at_once {
        return (served, None);
    }
    let port = station.send;
    let local = balance.solve(offers, port, &station.local(), flows);
    let local_rate = (station.compute + local.won) / station.per_task();
    if station.drop == 0.0 {
        if local_rate <= station.receive {
            return found(station, SideKind::Local, &local, local_rate);
        }
        // The link allows less: all flows in proportion.
        let share = (station.per_task() * station.receive - station.compute) / local.won;
        flows.iter_mut().for_each(|flow| *flow *= share);
        let best = Best { rate: station.receive, stop: Stop::Receive, prices: Prices::link_only() };
        return (best, None);
    }
    if local.sent <= station.may_send(local_rate) * (1.0 + ROUNDING) {
        return found(station, SideKind::Local, &local, local_rate);
    }
    let link = balance.solve(offers, port, &station.link(), flows);
    let link_rate = rate(station, link.won, link.sent);
    if link.sent <= link_rate * (1.0 + ROUNDING) {
        return found(station, SideKind::Receive, &link, link_rate);
    }
    // Each alone breaks the other: the smaller rate is the optimum; find flows for it.
    let (kind, other, most) = if local_rate < link_rate {
        (SideKind::Local, local, local_rate)
    } else {
        (SideKind::Receive, link, link_rate)
    };
    let sum = super::station::Side::sum(station.may_send(most));
    let at_rate = balance.solve(offers, port, &sum, flows);
    let needed = station.per_task() * most - station.compute;
    if at_rate.won > needed {
        let share = needed / at_rate.won;
        flows.iter_mut().for_each(|flow| *flow *= share);
    }
    found(station, kind, &other, most)
}

fn found(station: &Station, kind: SideKind, at: &Balanced, rate: f64) -> (Best, Option<(SideKind, f64)>) {
    let prices = Prices::of(station, Some(kind), at.side_price, at.port_price);
    let stop = match (kind, at.side_price > 0.0) {
        (_, false) if at.port_price > 0.0 => Stop::Port,
        (_, false) => Stop::Filled,
        (SideKind::Local, _) => Stop::Local,
        _ => Stop::Receive,
    };
    (Best { rate, stop, prices }, Some((kind, at.side_price)))
}

/// The order of service that the exact flows follow: gain less the other constraint's price, per room of the port.
pub(crate) fn priority(station: &Station, offer: &Offer, kind: SideKind, price: f64) -> f64 {
    let side = if kind == SideKind::Local { station.local() } else { station.link() };
    (offer.gain() - price * side.weight(offer)) / offer.port
}
