//! How many MB have passed one way of a link by a time: exact whenever a task has passed, and in between as many as the
//! rate that is expected gives.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    whole_mb: f64,
    /// Of the task under way, before the last pause.
    part_mb: f64,
    /// Since when, and how fast.
    moving: Option<(f64, f64)>,
}

impl Flow {
    /// Bytes begin to pass.
    pub fn begin(&mut self, now_s: f64, mb_per_s: f64) {
        self.moving = Some((now_s, if mb_per_s.is_finite() { mb_per_s } else { 0.0 }));
    }

    /// None pass for a while.
    pub fn pause(&mut self, now_s: f64) {
        self.part_mb += self.moved(now_s);
        self.moving = None;
    }

    /// The task has passed, or is given up (0 MB).
    pub fn end(&mut self, mb: f64) {
        self.whole_mb += mb;
        (self.part_mb, self.moving) = (0.0, None);
    }

    pub fn mb(&self, now_s: f64) -> f64 {
        self.whole_mb + self.part_mb + self.moved(now_s)
    }

    fn moved(&self, now_s: f64) -> f64 {
        self.moving.map_or(0.0, |(since, rate)| (now_s - since).max(0.0) * rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_tasks_count_exactly_and_those_under_way_by_their_rate() {
        let mut flow = Flow::default();
        flow.begin(1.0, 10.0);
        assert_eq!(flow.mb(1.5), 5.0);
        flow.pause(2.0);
        assert_eq!(flow.mb(9.0), 10.0);
        flow.begin(9.0, 20.0);
        flow.end(12.0);
        assert_eq!(flow.mb(50.0), 12.0);
    }
}
