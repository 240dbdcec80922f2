//! What was recorded, as a recorded program has it: `docs/reference/recorded-programs.md`.

use serde_json::{Value, json};

use super::Preemptions;
use crate::process::container_of;

impl Preemptions {
    /// Returns the absences of all processes, one after the other, and the rest as JSON: of each process how many bytes
    /// are its, the causes, and what was lost.
    #[must_use]
    pub fn encoded(&self) -> (Vec<u8>, Value) {
        let mut bytes = Vec::new();
        let mut processes = Vec::new();
        for (pid, one) in &self.processes {
            let before = bytes.len();
            for (absence, cause) in &one.absences {
                bytes.extend(absence.start_ns.to_le_bytes());
                bytes.extend(absence.end_ns.to_le_bytes());
                bytes.extend(absence.tid.to_le_bytes());
                bytes.extend((absence.kind as u16).to_le_bytes());
                bytes.extend(u16::try_from(absence.cpu).unwrap_or(u16::MAX).to_le_bytes());
                bytes.extend(cause.unwrap_or(u32::MAX).to_le_bytes());
                bytes.extend([0u8; 12]);
            }
            let short_s = one.short.1 as f64 / 1e9;
            processes
                .push(json!({"pid": pid, "bytes": bytes.len() - before, "short": one.short.0, "short_s": short_s}));
        }
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|one| {
                let container = container_of(&one.cgroup).map(|(runtime, id)| format!("{runtime} {id}"));
                json!({
                    "name": one.name, "pid": one.pid, "cgroup": one.cgroup, "container": container,
                    "seconds": one.ns as f64 / 1e9,
                })
            })
            .collect();
        (bytes, json!({"processes": processes, "causes": causes, "lost_events": self.lost_events, "full": self.full}))
    }
}
