//! What if: the disturbance without a cause, with one alone, with all aligned. What stays is left exactly as it was.

use super::{Disturbance, Source};

impl Disturbance {
    /// Without a cause: its source, or its recorded intervals, are gone; all others come at the same times as before.
    #[must_use]
    pub fn without(&self, cause: &str) -> Self {
        self.keeping(|name| name != cause)
    }

    /// With one cause alone.
    #[must_use]
    pub fn only(&self, cause: &str) -> Self {
        self.keeping(|name| name == cause)
    }

    /// With the causes for which `keep` says so.
    #[must_use]
    pub fn keeping(&self, keep: impl Fn(&str) -> bool) -> Self {
        let mut kept = self.clone();
        kept.sources.retain_mut(|source| match source {
            Source::Recorded(recorded) => {
                // The list of causes stays: intervals name their cause by its place there, and so does the rank's shift.
                let wanted: Vec<bool> = recorded.causes.iter().map(|cause| keep(cause)).collect();
                for cpu in &mut recorded.cpu {
                    cpu.intervals.retain(|interval| wanted.get(usize::from(interval.2)).copied().unwrap_or_default());
                }
                wanted.iter().any(|wanted| *wanted)
            }
            other => other.causes().iter().all(|cause| keep(cause)),
        });
        kept
    }

    /// With every source at the same times on all the ranks that it is on, and jobs coscheduled with others.
    #[must_use]
    pub fn aligned(&self) -> Self {
        let mut aligned = self.clone();
        aligned.sources.iter_mut().for_each(Source::align);
        aligned
    }
}
