//! The exact optimum of a node with a single port.
//!
//! Where the paper's order ends at the port or has served everybody, it is optimal. Where it ends at (3), or at (2) with
//! a drop (E0-5), a second constraint counts besides the port (E0-4): never both. What may be sent in all at the rate T is
//! `min(T, (receive - T) / drop)`, whose terms meet at `T* = receive / (1 + drop)`. If the best flows under the port and
//! (3) alone break (2), their rate lies above T*, so T* is possible and the best rate under (2) is at least T*, where (2) is
//! the smaller term: flows that hold it hold (3). The same the other way round.

use super::balance::{Balance, Balanced};
use super::serve::{rate, serve};
use super::station::{Best, Offer, Prices, SideKind, Station, Stop};

/// Relative excess that rounding may cause.
const ROUNDING: f64 = 1e-13;

/// The best rate of a node; `offers` stand in the order of priority. Writes the flows.
///
/// The second value is the price of the other constraint where the order by [`Offer::priority`] is not the optimal one.
pub(crate) fn best(
    station: &Station,
    offers: &[Offer],
    balance: &mut Balance,
    flows: &mut [f64],
) -> (Best, Option<(SideKind, f64)>) {
    let served = serve(station, offers, flows);
    let likelier = match served.stop {
        Stop::Filled | Stop::Port => return (served, None),
        Stop::Receive if station.drop == 0.0 || station.alone() >= station.receive => return (served, None),
        Stop::Receive => SideKind::Receive,
        Stop::Local => SideKind::Local,
    };
    let mut found = under(station, likelier, offers, balance, flows);
    let limit = station.may_send(found.0.rate);
    if station.drop == 0.0 && found.0.rate > station.receive {
        // The link allows less, whatever is sent: all flows in proportion.
        let wanted = station.per_task() * station.receive - station.compute;
        flows.iter_mut().for_each(|flow| *flow *= wanted / found.1.won);
        return (Best { rate: station.receive, stop: Stop::Receive, prices: Prices::link_only() }, None);
    }
    let mut kind = likelier;
    if found.1.sent > limit * (1.0 + ROUNDING) {
        kind = if likelier == SideKind::Local { SideKind::Receive } else { SideKind::Local };
        found = under(station, kind, offers, balance, flows);
    }
    (found.0, Some((kind, found.1.side_price)))
}

/// The best rate under the port and one other constraint.
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
        SideKind::Local => (station.compute + at.won) / station.per_task(),
        SideKind::Receive => rate(station, at.won, at.sent),
    };
    (Best { rate, stop, prices: Prices::of(station, Some(kind), at.side_price, at.port_price) }, at)
}

/// The order of service that the exact flows follow: gain less the other constraint's price, per room of the port.
pub(crate) fn priority(station: &Station, offer: &Offer, kind: SideKind, price: f64) -> f64 {
    (offer.gain() - price * station.side(kind).weight(offer)) / offer.port
}
