//! Errors of the GPU probe.

use thiserror::Error;

/// Why a GPU cannot be measured.
#[derive(Debug, Error)]
pub enum GpuError {
    /// The machine has no NVIDIA driver.
    #[error("this machine has no NVIDIA driver (libcuda.so was not found)")]
    NoDriver,
    /// The driver lists fewer devices.
    #[error("gpu is {index}; this machine has {count}")]
    NoDevice {
        index: usize,
        /// Number of devices listed by the driver.
        count: usize,
    },
    /// The driver or the device is older than what the kernels are compiled for.
    #[error("{what} is {found}; it must be at least {least}")]
    TooOld {
        /// The driver's CUDA version, or the device's compute capability.
        what: &'static str,
        found: String,
        least: &'static str,
    },
    /// A value of a block is out of range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value { field: &'static str, value: String, permitted: String },
    /// The caller's function failed. The caller holds its error.
    #[error("the function failed")]
    Function,
    /// A call of the driver failed.
    #[error("{call} failed: {why}")]
    Driver { call: &'static str, why: String },
}

impl GpuError {
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDriver | Self::NoDevice { .. } => "no-gpu",
            Self::TooOld { .. } => "gpu-too-old",
            Self::Value { .. } => "gpu",
            Self::Function => "gpu-function",
            Self::Driver { .. } => "gpu-failed",
        }
    }

    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoDriver => "`crosswind measure` without --gpu measures the processors",
            Self::NoDevice { .. } => "`nvidia-smi -L` lists them; CUDA_VISIBLE_DEVICES hides some",
            Self::TooOld { .. } => "update the driver, or measure a device of compute capability 8.0 or later",
            Self::Value { .. } | Self::Function => "",
            Self::Driver { .. } => "`nvidia-smi` says whether the device is in use or has failed",
        }
    }
}
