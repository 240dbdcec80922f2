//! Variants of a disturbance: without a cause, with one alone, or with all aligned. The remaining causes keep their
//! exact times.

use super::{Disturbance, Source};

impl Disturbance {
    /// Returns it without a cause: without its source or its recorded intervals. All others keep their times.
    #[must_use]
    pub fn without(&self, cause: &str) -> Self {
        self.keeping(|name| name != cause)
    }

    /// Returns it with one cause alone.
    #[must_use]
    pub fn only(&self, cause: &str) -> Self {
        self.keeping(|name| name == cause)
    }

    /// Returns it with the causes for which `keep` returns true.
    #[must_use]
    pub fn keeping(&self, keep: impl Fn(&str) -> bool) -> Self {
        let mut kept = self.clone();
        kept.sources.retain_mut(|source| match source {
            Source::Recorded(recorded) => {
                // The list of causes stays: intervals refer to their cause by its index there, and the rank's shift
                // is drawn by it.
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

    /// Returns it with every source at the same times on all of its ranks, and with jobs coscheduled with others.
    #[must_use]
    pub fn aligned(&self) -> Self {
        let mut aligned = self.clone();
        aligned.sources.iter_mut().for_each(Source::align);
        aligned
    }
}
