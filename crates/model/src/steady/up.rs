//! Bottom-up pass: the best rate of every subtree, leaves first.

use crosswind_schema::plan::{Method, Ports};

use super::balance::Balance;
use super::ranking::highest_first;
use super::serve::serve;
use super::single;
use super::station::{Best, Offer, Station};
use super::tree::Walk;

/// Results of the bottom-up pass, breadth first.
pub(crate) struct Up {
    /// Best rate of each subtree, and what limits it.
    pub best: Vec<Best>,
    /// Flow to each node when its parent does its best.
    pub flow: Vec<f64>,
    /// Children in the order of service, in the parent's range. The first `served[p]` of them are worthwhile.
    pub order: Vec<u32>,
    pub served: Vec<u32>,
}

impl Walk {
    /// Returns the offer of a child whose best rate is known.
    pub fn offered(&self, child: usize, up: &Up) -> Offer {
        self.offer(child, self.limit(child, up.best[child].rate))
    }

    /// Computes the best rate of every subtree.
    pub fn up(&self, method: Method) -> Up {
        let count = self.stations.len();
        let mut up = Up {
            best: vec![Best::default(); count],
            flow: vec![0.0; count],
            order: vec![0; count],
            served: vec![0; count],
        };
        let exact_single = method == Method::Exact && self.ports == Ports::Single;
        let (mut keyed, mut offers, mut flows, mut balance) = (Vec::new(), Vec::new(), Vec::new(), Balance::default());
        for place in (0..count).rev() {
            let station = &self.stations[place];
            let range = self.children(place);
            if range.is_empty() {
                up.best[place] = leaf(station);
                continue;
            }
            keyed.clear();
            for child in range.clone() {
                if !self.never_send(child) {
                    keyed.push((self.offer(child, 0.0).priority(), child as u32));
                }
            }
            highest_first(&mut keyed);
            offers.clear();
            offers.extend(keyed.iter().map(|&(_, child)| self.offered(child as usize, &up)));
            flows.clear();
            flows.resize(offers.len(), 0.0);
            let best = match exact_single {
                true => single::best(station, &offers, &mut balance, &mut flows),
                false => serve(station, &offers, &mut flows),
            };
            for (offer, &flow) in offers.iter().zip(&flows) {
                up.flow[offer.child as usize] = flow;
            }
            if exact_single && best.side_price > 0.0 {
                for (entry, offer) in keyed.iter_mut().zip(&offers) {
                    entry.0 = single::priority(station, offer, best.side, best.side_price);
                }
                highest_first(&mut keyed);
            }
            for (place, &(_, child)) in up.order[range].iter_mut().zip(&keyed) {
                *place = child;
            }
            up.served[place] = offers.len() as u32;
            up.best[place] = best;
        }
        up
    }
}

/// Working memory of [`best_rate`], reused from node to node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bench {
    flows: Vec<f64>,
    balance: Balance,
}

/// Returns the best rate of one node with these offers from its children. Sorts the offers into the order of service.
pub(crate) fn best_rate(station: &Station, offers: &mut [Offer], ports: Ports, bench: &mut Bench) -> f64 {
    if offers.is_empty() {
        return leaf(station).rate;
    }
    offers.sort_unstable_by(|a, b| b.priority().total_cmp(&a.priority()));
    bench.flows.clear();
    bench.flows.resize(offers.len(), 0.0);
    match ports {
        Ports::Single => single::best(station, offers, &mut bench.balance, &mut bench.flows).rate,
        Ports::Multi => serve(station, offers, &mut bench.flows).rate,
    }
}

fn leaf(station: &Station) -> Best {
    if station.alone() >= station.receive {
        return Best::of_link(station);
    }
    Best { rate: station.alone(), ..Best::default() }
}
