"""Faults that are put into a scratch copy of the agent: name, file, what stands there, what is put there instead."""

# ruff: noqa: E501
AGENT = "crates/agent/src/"
POLICY = "crates/policy/src/farm/"

MUTANTS = [
    (
        "first request lost where a node asks before its run starts",
        AGENT + "agent.rs",
        "if self.asked > 0 && self.course.may_ask() {",
        "if self.asked > 1 && self.course.may_ask() {",
    ),
    (
        "result of a child that left is believed",
        AGENT + "hearing.rs",
        "child.connected) {\n                    if let Err",
        "child.number < u32::MAX) {\n                    if let Err",
    ),
    (
        "lost child's tasks stay out",
        POLICY + "node.rs",
        "for task in ledger.recall(child).into_iter().rev() {",
        "for task in ledger.recall(child).into_iter().skip(1) {",
    ),
    (
        "second result of a task is delivered",
        POLICY + "ledger.rs",
        "self.out.remove(&task).is_some()",
        "self.out.remove(&task); true",
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
    (
        "drained child is not told to finish",
        AGENT + "children.rs",
        "draining.told = true;\n                self.say",
        "draining.told = true;\n                if false { return; }\n                let _ = |this: &mut Self| this.say",
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
        "root without agents waits for ever",
        AGENT + "phases.rs",
        "now_ns.saturating_sub(self.course.began_ns) > (patience_s * 1e9) as u64\n    }",
        "patience_s < 0.0\n    }",
    ),
]
