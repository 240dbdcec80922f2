//! Online estimation of rates and interference. Passes the policy's estimator what happens and when, and forwards its
//! revisions to the node concerned: this node's policy, a child or the parent.

use crosswind_policy::farm::Event;
use crosswind_policy::farm::estimate::{Estimator, Revision, observing};
use crosswind_schema::run::ObservedNode;
use crosswind_schema::units::Quantity;

use crate::action::{Peer, TaskBytes};
use crate::agent::Agent;
use crate::frame::Frame;
use crate::record::ObservedLink;
use crate::settings::Work;

impl<P: TaskBytes> Agent<P> {
    /// Calls `told` with the estimator, the time since time 0 in platform seconds, and a list for revisions; then
    /// forwards the revisions. `at_ns` is on the agent's own clock.
    pub(crate) fn estimate(&mut self, at_ns: u64, told: impl FnOnce(&mut Estimator, f64, &mut Vec<Revision>)) {
        let now_s = (at_ns as f64 - self.zero_ns as f64) * 1e-9 * self.scale();
        let mut revisions = Vec::new();
        told(&mut self.estimator, now_s, &mut revisions);
        for revision in revisions {
            match revision {
                Revision::Child { child, settings } => self.events.push_back((Event::Known { child, settings }, at_ns)),
                Revision::Places { child, tasks } => {
                    self.send_frame(Peer::Child(child), Frame::Places { tasks });
                }
                Revision::Subtree(subtree) => {
                    self.send_frame(Peer::Parent, Frame::Subtree(subtree));
                }
            }
        }
    }

    /// Returns when the estimator takes an event of emulated work or of an emulated link to have happened. That is the
    /// time of the emulation: how much later this process noticed says nothing about the link or the processor.
    pub(crate) fn seen_ns(&self, due_ns: u64, charged_ns: u64) -> u64 {
        if self.is_emulated() { due_ns } else { charged_ns }
    }

    /// Records that the last byte of a task has left for a child. `waited`: as of [`Done`](crate::action::Done).
    pub(crate) fn estimate_sent(&mut self, child: u32, task: u64, waited: bool, at_ns: u64) {
        let bytes = self.task_store.get(task).map_or(0, |stored| stored.payload.bytes());
        let emulated = self.is_emulated();
        let measured = if emulated { bytes } else { observing::measured_bytes(bytes) };
        self.estimate(at_ns, |estimator, now_s, revisions| {
            estimator.sent(child, measured as f64 * 1e-6, emulated || waited, now_s, revisions);
        });
    }

    /// Records a task that was computed in one attempt, if its amount of work is meaningful.
    pub(crate) fn estimate_computed(&mut self, task: u64, began_ns: u64, ended_ns: u64) {
        let known = matches!(self.run.work, Work::Emulated { .. } | Work::Kernel { .. });
        let work = self.task_store.work(task);
        if !observing::measures_processor(known, work) {
            return;
        }
        if !self.is_emulated() {
            self.estimate(began_ns, |estimator, now_s, _| estimator.computes(now_s));
        }
        self.estimate(ended_ns, |estimator, now_s, revisions| estimator.computed(work, now_s, revisions));
    }

    /// Copies the estimates into the totals of the report.
    pub(crate) fn note_what_was_seen(&mut self) {
        let own = self.own();
        let (compute, ir) = (own.compute_per_s.get(), own.ir_receive_s_per_mb.get());
        let seen = self.estimator.seen();
        self.account.totals.seen = ObservedNode {
            compute_per_s: seen.compute_per_s.beside(Some(compute)),
            ir_receive_s_per_mb: seen.ir_receive_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
            ..ObservedNode::default()
        };
        let links = self.children.iter().zip(&seen.children).filter_map(|(slot, seen)| {
            let place = self.layout.place(&slot.name)?;
            let node = &self.run.platform.nodes[place as usize];
            let ir = node.ir_send_s_per_mb.get();
            let seen = ObservedNode {
                receive_limit_mb_per_s: seen.receive_limit_mb_per_s.beside(node.link_mb_per_s()),
                ir_send_s_per_mb: seen.ir_send_s_per_mb.and_then(|seen| seen.beside(Some(ir))),
                ..ObservedNode::default()
            };
            Some(ObservedLink { number: slot.number, seen })
        });
        self.account.totals.links = links.collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::action::{Done, Kind, Outcome};
    use crate::settings::RunSettings;

    #[derive(Clone, Debug)]
    struct Blank(u64);

    impl TaskBytes for Blank {
        fn of_text(text: String) -> Self {
            Self(text.len() as u64)
        }

        fn blank(bytes: u64) -> Self {
            Self(bytes)
        }

        fn bytes(&self) -> u64 {
            self.0
        }

        fn in_memory(&self) -> u64 {
            0
        }

        fn missing(&self) -> Option<String> {
            None
        }
    }

    const LIMIT: f64 = 20.0;
    const BYTES: u64 = 2_000_000;
    const LATE_NS: [u64; 4] = [0, 30_000_000, 100_000_000, 2_000_000_000];
    const TASKS: usize = 40;

    fn root(work: serde_json::Value) -> Agent<Blank> {
        let nodes = json!([
            {"name": "root", "compute_per_s": 10.0},
            {"name": "a", "parent": "root", "compute_per_s": 10.0, "receive_limit_mb_per_s": LIMIT},
        ]);
        let run = json!({
            "platform": {"schema_version": 1, "name": "pair", "node": nodes}, "policy": {"ports": "multi"},
            "mean_size_mb": 2.0, "mean_work": 1.0, "work": work,
        });
        let run: RunSettings = serde_json::from_value(run).expect("right settings");
        Agent::new("root", None, run, false, 0).expect("a right tree")
    }

    /// Sends tasks at a rate, each of which the process notices late, and returns the link's rate as seen then.
    fn seen(mut agent: Agent<Blank>, rate: f64, waited: bool, limit: f64, late_ns: &[u64]) -> (f64, u64) {
        let took_ns = (BYTES as f64 / rate * 1e3) as u64;
        let mut now_ns = 0;
        for task in 0..TASKS as u64 {
            agent.task_store.hold(task, Blank(BYTES), 1.0);
            let began_ns = now_ns;
            agent.estimate(began_ns, |estimator, now_s, _| estimator.sends(0, Some(limit), now_s));
            let at_ns = began_ns + took_ns;
            now_ns = at_ns + late_ns[task as usize % late_ns.len()];
            let (kind, outcome) = (Kind::Task { work: 1.0 }, Outcome::Sent);
            agent.transferred(
                Peer::Child(0),
                Done { task, kind, outcome, at_ns, began_ns, bytes: BYTES, waited },
                now_ns,
            );
        }
        let seen = agent.estimator.seen().children[0].receive_limit_mb_per_s;
        (seen.value, seen.observations)
    }

    fn emulated() -> serde_json::Value {
        json!({"kind": "emulated", "time_scale": 1.0, "result_bytes": 10})
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_host_that_stands_still_does_not_slow_an_emulated_link(
            limit in 1.0..=LIMIT,
            late_ns in prop::collection::vec(0..3_000_000_000_u64, 1..TASKS),
        ) {
            let (rate, _) = seen(root(emulated()), limit, false, limit, &late_ns);
            prop_assert!((rate / LIMIT - 1.0).abs() < 1e-6, "{rate} with a limit of {limit}");
        }

        #[test]
        fn an_emulated_link_below_the_policys_limit_is_found_however_late_that_is_noticed(
            rate in 1.0..0.9 * LIMIT,
            late_ns in prop::collection::vec(0..3_000_000_000_u64, 1..TASKS),
        ) {
            let (seen, observations) = seen(root(emulated()), rate, false, LIMIT, &late_ns);
            prop_assert!((seen / rate - 1.0).abs() < 0.03, "{seen} instead of {rate}");
            prop_assert!(observations > 8);
        }
    }

    #[test]
    fn a_real_send_below_its_pace_counts_only_if_its_connection_took_no_more() {
        let work = json!({"kind": "callable"});
        let (rate, observations) = seen(root(work.clone()), 5.0, false, LIMIT, &LATE_NS);
        assert!(
            (rate / LIMIT - 1.0).abs() < 1e-9 && observations == 0,
            "{rate}, {observations}: this process was late"
        );
        let (rate, observations) = seen(root(work), 5.0, true, LIMIT, &LATE_NS);
        assert!(rate < 0.5 * LIMIT && observations > 8, "{rate}, {observations}");
    }

    #[test]
    fn a_host_that_stands_still_does_not_slow_an_emulated_processor() {
        let mut agent = root(emulated());
        let mut now_ns = 0;
        for task in 0..TASKS as u64 {
            agent.task_store.hold(task, Blank(10), 1.0);
            agent.estimate(now_ns, |estimator, now_s, _| estimator.computes(now_s));
            if let crate::agent::Processor::Emulated(processor) = &mut agent.processor {
                processor.begin(task, 1.0, now_ns);
            }
            now_ns += 100_000_000 + LATE_NS[task as usize % LATE_NS.len()];
            agent.pass_time(now_ns);
        }
        let seen = agent.estimator.seen().compute_per_s;
        assert!((seen.value / 10.0 - 1.0).abs() < 1e-6 && seen.observations > 8, "{seen:?}");
    }
}
