//! Service of children in an order, each as much as it can take, until a constraint ends it.
//!
//! In order of priority this is the paper's rule. For multi-port sends it is optimal (E0-5): at equal sum, lower
//! interference relaxes every constraint. For single-port sends it is optimal unless (2) with a drop, or (3), ends it
//! (E0-4): then two constraints bind at once and [`super::balance`] takes over.

use super::station::{Best, Offer, ROUNDING, SideKind, Station, Stop};

/// Serves in the given order and writes each child's flow.
pub(crate) fn serve(station: &Station, offers: &[Offer], flows: &mut [f64]) -> Best {
    flows.fill(0.0);
    if station.alone() >= station.receive {
        return Best::of_link(station);
    }
    let (local, link) = (station.side(SideKind::Local), station.side(SideKind::Receive));
    let (mut local_room, mut link_room, mut port_room) = (local.room, link.room, station.send);
    let (mut won, mut sent) = (0.0, 0.0);
    for (offer, flow) in offers.iter().zip(flows.iter_mut()) {
        let (local_weight, link_weight) = (local.weight(offer), link.weight(offer));
        let (mut amount, mut stop) = (offer.limit, None);
        for (room, weight, reason) in [
            (port_room, offer.port, Stop::Port),
            (local_room, local_weight, Stop::Local),
            (link_room, link_weight, Stop::Receive),
        ] {
            // Strict comparison: a child filled at the same point leaves the decision to the next one.
            if weight > 0.0 && room < amount * weight {
                (amount, stop) = (room / weight, Some(reason));
            }
        }
        *flow = amount;
        won += offer.gain() * amount;
        sent += amount;
        if let Some(stop) = stop {
            let gain = offer.gain();
            let (side, side_price, port_price) = match stop {
                Stop::Local => (SideKind::Local, gain / local_weight, 0.0),
                Stop::Receive => (SideKind::Receive, gain / link_weight, 0.0),
                Stop::Port | Stop::Filled => (SideKind::default(), 0.0, gain * offer.per_port),
            };
            return Best { rate: rate(station, won, sent), stop, side, side_price, port_price };
        }
        port_room -= amount * offer.port;
        local_room = (local_room - amount * local_weight).max(0.0);
        link_room = (link_room - amount * link_weight).max(0.0);
        port_room = port_room.max(0.0);
    }
    Best { rate: rate(station, won, sent), ..Best::default() }
}

/// Returns the rate that flows allow by (1) and (2), given their gain and their sum.
pub(crate) fn rate(station: &Station, won: f64, sent: f64) -> f64 {
    let link = if station.receive.is_finite() { station.receive - station.drop * sent } else { f64::INFINITY };
    ((station.compute + won) * station.unit()).min(link)
}

/// Serves in the given order until the node can just take `rate`, which must be at most its best.
///
/// Returns `false` if the order breaks (2) or (3) on the way, which may happen for single-port sends and a rate below
/// the best.
pub(crate) fn serve_to(station: &Station, offers: &[Offer], rate: f64, flows: &mut [f64]) -> bool {
    flows.fill(0.0);
    let mut wanted = station.per_task() * rate - station.compute;
    let (mut port_room, mut sent) = (station.send, 0.0);
    for (offer, flow) in offers.iter().zip(flows.iter_mut()) {
        if wanted <= 0.0 {
            break;
        }
        let amount = offer.limit.min(wanted / offer.gain()).min(port_room * offer.per_port);
        *flow = amount;
        sent += amount;
        wanted -= amount * offer.gain();
        port_room = (port_room - amount * offer.port).max(0.0);
    }
    let scale = station.compute + station.per_task() * rate;
    wanted <= ROUNDING * scale && station.allows(rate, sent)
}
