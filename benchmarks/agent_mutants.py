"""Faults that are put into a scratch copy of the agent: name, file, what stands there, what is put there instead.

Those that begin with a version were faults of that version (CHANGELOG.md).
"""

# ruff: noqa: E501
AGENT = "crates/agent/src/"
POLICY = "crates/policy/src/farm/"

MUTANTS = [
    (
        "a request is lost now and then",
        AGENT + "hearing.rs",
        "self.later(latency, Event::Asked { child, tasks }, None, now_ns);",
        "if tasks != 1 { self.later(latency, Event::Asked { child, tasks }, None, now_ns); }",
    ),
    (
        "0.1.0: a fast child that joins is asked for nothing",
        AGENT + "hearing.rs",
        "self.tell(Event::Asked { child, tasks }, now_ns);",
        "let _ = (child, tasks);",
    ),
    (
        "0.1.0: the root waits for an inner node that was left without children and came again",
        AGENT + "children.rs",
        "self.connected && (self.ready.is_none() || asks || !self.out.sent.is_empty())",
        "self.connected && (asks || true)",
    ),
    (
        "0.1.0: a guest below a node with nothing else that computes gets no tasks",
        AGENT + "agent.rs",
        "self.own().compute_per_s.get() > 0.0 || children.any(|child| child.may_compute(true))",
        "self.own().compute_per_s.get() > 0.0 || children.any(|child| child.may_compute(false))",
    ),
    (
        "0.1.0: a run whose only agents the plan never serves does not end",
        AGENT + "agent.rs",
        "children.any(|(at, child)| child.may_compute(self.policy.serves(at)))",
        "children.any(|(_, child)| child.may_compute(true))",
    ),
    (
        "lost child's tasks stay out",
        POLICY + "node.rs",
        "for task in ledger.recall(child).into_iter().rev() {",
        "for task in ledger.recall(child).into_iter().skip(1) {",
    ),
    (
        "silent child is never lost",
        AGENT + "hearing.rs",
        "state.connected && now_ns.saturating_sub(state.heard_ns) > silence",
        "state.connected && silence == 0",
    ),
    (
        "silent parent is never lost",
        AGENT + "hearing.rs",
        "if now_ns.saturating_sub(self.pulse.parent_heard_ns) > silence {",
        "if silence == 0 {",
    ),
    ("task that ends its agents is tried for ever", POLICY + "giving_up.rs", "lost >= MOST_LOST", "lost > 1_000_000"),
    ("task over its time is tried for ever", POLICY + "giving_up.rs", "tries > retries", "tries > retries + 1_000_000"),
    (
        "inputs are kept after their results have gone",
        AGENT + "agent.rs",
        "let bytes = self.stock.drop_task(task);\n        self.actions.extend(bytes.map(Action::Free));\n        if self.root",
        "let bytes: Option<P> = None;\n        self.actions.extend(bytes.map(Action::Free));\n        if self.root",
    ),
    (
        "task handed back is not given to others",
        AGENT + "hearing.rs",
        "self.later(latency, Event::HandedBack { child, task }, None, now_ns);",
        "let _ = latency;",
    ),
    (
        "child that joins a run is not told that time 0 is over",
        AGENT + "hearing.rs",
        "if self.course.phase == Phase::Running {\n                    let root_ns",
        "if self.course.phase == Phase::Ready {\n                    let root_ns",
    ),
    (
        "0.1.0: futures never end when all agents are gone",
        AGENT + "phases.rs",
        "now_ns.saturating_sub(self.course.began_ns) > (patience_s * 1e9) as u64\n    }",
        "patience_s < 0.0\n    }",
    ),
]
