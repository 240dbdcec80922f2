//! A processor that exists only in the platform's file. A task takes the time given by the compute rate and the
//! interference law under the agent's current traffic. No thread sleeps: the event loop asks when the work is due.
//!
//! `Rate = C (1 - ir_receive R - sum of ir_send S over the children)`, never below 0 (interference-aware-scheduling,
//! section 3.1; `law` of crates/model).
//!
//! Results load their link like tasks, at both ends (as in crates/sim, results.rs).

#[derive(Debug)]
pub struct EmulatedProcessor {
    compute_per_s: f64,
    ir_receive: f64,
    /// One entry per child, by child number.
    ir_send: Vec<f64>,
    time_scale: f64,
    receive_mb_per_s: f64,
    send_mb_per_s: Vec<f64>,
    /// Rates of results, to the parent and from each child, MB/s of the platform.
    result_up_mb_per_s: f64,
    result_mb_per_s: Vec<f64>,
    job: Option<Job>,
}

#[derive(Debug)]
struct Job {
    task: u64,
    left: f64,
    rate_per_ns: f64,
    at_ns: u64,
    began_ns: u64,
}

impl EmulatedProcessor {
    /// Creates an idle processor on a node whose links are idle.
    #[must_use]
    pub fn new(compute_per_s: f64, ir_receive: f64, ir_send: Vec<f64>, time_scale: f64) -> Self {
        let children = ir_send.len();
        Self {
            compute_per_s,
            ir_receive,
            ir_send,
            time_scale,
            receive_mb_per_s: 0.0,
            send_mb_per_s: vec![0.0; children],
            result_up_mb_per_s: 0.0,
            result_mb_per_s: vec![0.0; children],
            job: None,
        }
    }

    pub fn child(&mut self, ir_send: f64) {
        self.ir_send.push(ir_send);
        self.send_mb_per_s.push(0.0);
        self.result_mb_per_s.push(0.0);
    }

    fn rate_per_ns(&self) -> f64 {
        let links = self.send_mb_per_s.iter().zip(&self.result_mb_per_s);
        let children: f64 = self.ir_send.iter().zip(links).map(|(ir, (send, result))| ir * (send + result)).sum();
        let left = 1.0 - self.ir_receive * (self.receive_mb_per_s + self.result_up_mb_per_s) - children;
        self.compute_per_s * left.max(0.0) * self.time_scale * 1e-9
    }

    fn change(&mut self, at_ns: u64) {
        let Some(mut job) = self.job.take() else { return };
        job.left = (job.left - job.rate_per_ns * at_ns.saturating_sub(job.at_ns) as f64).max(0.0);
        (job.rate_per_ns, job.at_ns) = (self.rate_per_ns(), job.at_ns.max(at_ns));
        self.job = Some(job);
    }

    /// Changes the compute rate (work units/s) from `at_ns` on.
    pub fn compute_at(&mut self, compute_per_s: f64, at_ns: u64) {
        self.compute_per_s = compute_per_s;
        self.change(at_ns);
    }

    /// Sets the rate of tasks received from the parent, MB/s of the platform, from `at_ns` on.
    pub fn receive(&mut self, mb_per_s: f64, at_ns: u64) {
        self.receive_mb_per_s = mb_per_s;
        self.change(at_ns);
    }

    /// Sets the rate of tasks sent to a child, MB/s of the platform, from `at_ns` on.
    pub fn send(&mut self, child: usize, mb_per_s: f64, at_ns: u64) {
        // A node reports the rates of all its children whenever one changes.
        if self.send_mb_per_s[child] != mb_per_s {
            self.send_mb_per_s[child] = mb_per_s;
            self.change(at_ns);
        }
    }

    /// Sets the rate of results sent to the parent, MB/s of the platform, from `at_ns` on.
    pub fn result_up(&mut self, mb_per_s: f64, at_ns: u64) {
        if self.result_up_mb_per_s != mb_per_s {
            self.result_up_mb_per_s = mb_per_s;
            self.change(at_ns);
        }
    }

    /// Sets the rate of results received from a child, MB/s of the platform, from `at_ns` on.
    pub fn result_from(&mut self, child: usize, mb_per_s: f64, at_ns: u64) {
        self.result_mb_per_s[child] = mb_per_s;
        self.change(at_ns);
    }

    /// Total rate of tasks sent to children, MB/s of the platform.
    pub fn sends(&self) -> f64 {
        self.send_mb_per_s.iter().sum()
    }

    pub fn begin(&mut self, task: u64, work: f64, at_ns: u64) {
        let rate_per_ns = self.rate_per_ns();
        self.job = Some(Job { task, left: work, rate_per_ns, at_ns, began_ns: at_ns });
    }

    /// Returns when the current work ends at the present rate, ns. `None` if there is no work or the rate is 0.
    pub fn due(&self) -> Option<u64> {
        let job = self.job.as_ref()?;
        if job.left <= 0.0 {
            return Some(job.at_ns);
        }
        (job.rate_per_ns > 0.0).then(|| job.at_ns + (job.left / job.rate_per_ns).ceil() as u64)
    }

    /// Removes the task that is done by `now_ns`. Returns its number, when it began and when it ended.
    pub fn done(&mut self, now_ns: u64) -> Option<(u64, u64, u64)> {
        let due = self.due().filter(|due| *due <= now_ns)?;
        self.job.take().map(|job| (job.task, job.began_ns, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_the_time_that_the_law_gives_through_every_change_of_traffic() {
        let mut processor = EmulatedProcessor::new(10.0, 0.05, vec![0.02, 0.04], 1.0);
        processor.begin(7, 10.0, 0); // undisturbed: 1 s
        assert_eq!(processor.due(), Some(1_000_000_000));
        processor.send(1, 10.0, 500_000_000); // half of the work remains, at 0.6 of the rate
        assert_eq!(processor.due(), Some(500_000_000 + 833_333_334));
        processor.receive(8.0, 500_000_000); // 0.2 of the rate
        assert_eq!(processor.due(), Some(500_000_000 + 2_500_000_001));
        processor.receive(12.0, 600_000_000); // the rate drops to 0
        assert_eq!(processor.due(), None);
        processor.receive(0.0, 700_000_000);
        processor.send(1, 0.0, 700_000_000);
        let (task, began, ended) = processor.done(u64::MAX).expect("done");
        assert_eq!((task, began), (7, 0));
        assert!((ended as f64 - 1.18e9).abs() < 10.0, "{ended}");
    }

    #[test]
    fn a_time_scale_of_ten_is_ten_times_as_fast() {
        let mut processor = EmulatedProcessor::new(10.0, 0.0, vec![], 10.0);
        processor.begin(0, 10.0, 5);
        assert_eq!(processor.due(), Some(5 + 100_000_000));
    }
}
