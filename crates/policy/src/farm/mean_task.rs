//! A farm's mean task.

/// A task of mean size and work, which orders and buffer sizes are computed for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTask {
    pub size_mb: f64,
    pub work: f64,
}
