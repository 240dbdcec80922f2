//! A processor that only exists in the platform's file: work takes the time that its rate and the interference law give,
//! with the traffic that the agent has at each moment. No thread sleeps; the agent's loop is told when the work will be done.
//!
//! Rate = C (1 - ir_receive R - sum of ir_send S over the children), never below 0 (interference-aware-scheduling,
//! section 3.1; `law` of crates/model).
//!
//! Results count on their link like tasks, at both ends (as in crates/sim, results.rs).

#[derive(Debug)]
pub struct EmulatedProcessor {
    compute_per_s: f64,
    ir_receive: f64,
    /// By the child's number.
    ir_send: Vec<f64>,
    time_scale: f64,
    receive_mb_per_s: f64,
    send_mb_per_s: Vec<f64>,
    /// Results: to the parent, and from each child.
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
    /// A processor that is idle, on a node whose links are.
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
        let rate = self.rate_per_ns();
        if let Some(job) = &mut self.job {
            job.left = (job.left - job.rate_per_ns * at_ns.saturating_sub(job.at_ns) as f64).max(0.0);
            (job.rate_per_ns, job.at_ns) = (rate, job.at_ns.max(at_ns));
        }
    }

    /// Another compute rate, from then on.
    pub fn compute_at(&mut self, compute_per_s: f64, at_ns: u64) {
        self.compute_per_s = compute_per_s;
        self.change(at_ns);
    }

    /// MB/s of the platform that come from the parent from now on.
    pub fn receive(&mut self, mb_per_s: f64, at_ns: u64) {
        self.receive_mb_per_s = mb_per_s;
        self.change(at_ns);
    }

    /// MB/s of the platform that go to a child from now on.
    pub fn send(&mut self, child: usize, mb_per_s: f64, at_ns: u64) {
        self.send_mb_per_s[child] = mb_per_s;
        self.change(at_ns);
    }

    /// MB/s of the platform that results to the parent take from now on.
    pub fn result_up(&mut self, mb_per_s: f64, at_ns: u64) {
        if self.result_up_mb_per_s != mb_per_s {
            self.result_up_mb_per_s = mb_per_s;
            self.change(at_ns);
        }
    }

    /// MB/s of the platform that a child's results take from now on.
    pub fn result_from(&mut self, child: usize, mb_per_s: f64, at_ns: u64) {
        self.result_mb_per_s[child] = mb_per_s;
        self.change(at_ns);
    }

    /// All that is sent, MB/s of the platform.
    pub fn sends(&self) -> f64 {
        self.send_mb_per_s.iter().sum()
    }

    pub fn begin(&mut self, task: u64, work: f64, at_ns: u64) {
        let rate_per_ns = self.rate_per_ns();
        self.job = Some(Job { task, left: work, rate_per_ns, at_ns, began_ns: at_ns });
    }

    /// When the work will be done, if nothing changes; none: never, or there is none.
    pub fn due(&self) -> Option<u64> {
        let job = self.job.as_ref()?;
        if job.left <= 0.0 {
            return Some(job.at_ns);
        }
        (job.rate_per_ns > 0.0).then(|| job.at_ns + (job.left / job.rate_per_ns).ceil() as u64)
    }

    /// The task that is done by then: its number, when it began and when it was done.
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
        processor.begin(7, 10.0, 0); // alone: 1 s
        assert_eq!(processor.due(), Some(1_000_000_000));
        processor.send(1, 10.0, 500_000_000); // half is left, at 0.6 of the rate
        assert_eq!(processor.due(), Some(500_000_000 + 833_333_334));
        processor.receive(8.0, 500_000_000); // 0.2 of the rate
        assert_eq!(processor.due(), Some(500_000_000 + 2_500_000_001));
        processor.receive(12.0, 600_000_000); // nothing is left of it
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
