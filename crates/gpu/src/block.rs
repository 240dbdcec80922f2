//! One measurement block: its settings and its timings.

use serde::{Deserialize, Serialize};

use crate::error::GpuError;
use crate::traffic::Traffic;
use crate::work::Kernel;

/// Settings of one block: an optional kernel, measured with or without traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    #[serde(default)]
    pub kernel: Option<Kernel>,
    /// Rounds of work in one launch.
    pub rounds: u32,
    /// Launches, or calls of the caller's function, between the two events: the same work in every block of a kernel.
    pub launches: u32,
    #[serde(default)]
    pub traffic: Option<Traffic>,
    /// Requested rate, MB/s in each direction. `None` means no limit.
    #[serde(default)]
    pub mb_per_s: Option<f64>,
    /// MB to move in each direction. `None` means as long as the kernel runs.
    #[serde(default)]
    pub amount_mb: Option<f64>,
    /// Traffic before the first event, s.
    pub settle_s: f64,
    /// Time between the events if nothing computes, s.
    pub seconds: f64,
}

impl Block {
    /// Checks what can be checked without a device.
    ///
    /// # Errors
    /// [`GpuError::Value`] if a field is out of range.
    pub fn check(&self) -> Result<(), GpuError> {
        let wrong = |field, value: String, permitted: &str| {
            Err(GpuError::Value { field, value, permitted: permitted.to_owned() })
        };
        if !(1..=1000).contains(&self.launches) {
            return wrong("launches", self.launches.to_string(), "1 to 1000");
        }
        if self.kernel.is_some() && self.rounds == 0 {
            return wrong("rounds", self.rounds.to_string(), "at least 1");
        }
        for (field, value) in [("seconds", self.seconds), ("settle_s", self.settle_s)] {
            if !(0.0..=10.0).contains(&value) {
                return wrong(field, value.to_string(), "0 to 10 s");
            }
        }
        if let Some(rate) = self.mb_per_s.filter(|rate| !(1.0..=1e8).contains(rate)) {
            return wrong("mb_per_s", rate.to_string(), "1 to 100000000 MB/s");
        }
        if let Some(amount) = self.amount_mb.filter(|amount| !(0.0..=1e6).contains(amount)) {
            return wrong("amount_mb", amount.to_string(), "0 to 1000000 MB");
        }
        self.traffic.map_or(Ok(()), |traffic| traffic.check())
    }
}

/// Results of one block, timed by the GPU's own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Time between the two events, s.
    pub seconds: f64,
    /// Units of work done between the events.
    pub work: f64,
    /// MB moved into the device between the events.
    pub to_device_mb: f64,
    /// MB moved out of the device between the events.
    pub to_host_mb: f64,
    /// MB moved within the device between the events.
    pub within_mb: f64,
    /// From the first event to the end of the last chunk, s; 0 without traffic.
    pub moved_s: f64,
}

/// Timings of the caller's function when it enqueues work behind other work that keeps its stream busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// Duration of the other work, s.
    pub lead_s: f64,
    /// Time until the calls had returned, s on the host's clock.
    pub host_s: f64,
    /// From the end of the other work to the end of what the calls enqueued, s.
    pub gpu_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Block = Block {
        kernel: Some(Kernel::Fma),
        rounds: 1,
        launches: 1,
        traffic: None,
        mb_per_s: None,
        amount_mb: None,
        settle_s: 0.0,
        seconds: 0.0,
    };

    #[test]
    fn fields_out_of_range_are_named() {
        let cases = [
            (Block { launches: 0, ..IDLE }, "launches is 0"),
            (Block { rounds: 0, ..IDLE }, "rounds is 0"),
            (Block { settle_s: f64::NAN, ..IDLE }, "settle_s is NaN"),
            (Block { seconds: 11.0, ..IDLE }, "seconds is 11"),
            (Block { mb_per_s: Some(0.0), ..IDLE }, "mb_per_s is 0"),
            (Block { amount_mb: Some(-1.0), ..IDLE }, "amount_mb is -1"),
        ];
        assert!(IDLE.check().is_ok());
        for (block, message) in cases {
            assert!(block.check().unwrap_err().to_string().starts_with(message), "{message}");
        }
    }
}
