//! MB transferred in one direction of a link by a given time. Exact whenever a task is complete, and interpolated at
//! the expected rate in between.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    whole_mb: f64,
    /// MB of the current task before the last pause.
    part_mb: f64,
    /// (Time since when bytes flow, s; expected rate, MB/s). `None` while paused.
    moving: Option<(f64, f64)>,
}

impl Flow {
    /// Starts or resumes the flow at the expected rate. An infinite rate counts as 0.
    pub fn begin(&mut self, now_s: f64, mb_per_s: f64) {
        self.moving = Some((now_s, if mb_per_s.is_finite() { mb_per_s } else { 0.0 }));
    }

    pub fn pause(&mut self, now_s: f64) {
        self.part_mb += self.moved(now_s);
        self.moving = None;
    }

    /// Ends the current task with its exact size, or 0 MB if it was given up.
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
