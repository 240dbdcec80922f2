//! The kernels that are measured: what limits each, and the work of one launch.

use serde::{Deserialize, Serialize};

use crate::error::GpuError;

/// FLOP of one 16x8x16 product. Every warp runs four chains of them.
const FLOP_PER_PRODUCT: f64 = 4096.0;
const CHAINS: f64 = 4.0;
const FLOP_PER_ROUND_AND_THREAD: f64 = 16.0;
const BYTES_PER_ELEMENT: f64 = 48.0;
/// One step: the layers of a small model, as rounds of the other kernels.
pub(crate) const STEP: [(Kernel, u32); 3] = [(Kernel::Tensor, 2048), (Kernel::Triad, 1), (Kernel::Fma, 1024)];

/// A kernel, by what limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Compute-bound: 16-bit matrix products in registers, by the tensor cores.
    Tensor,
    /// Compute-bound: multiply-adds of 32 bits in registers.
    Fma,
    /// Memory-bound: a = b + s c over arrays larger than any cache.
    Triad,
    /// Like `Triad`, with 16 more multiply-adds per element: partly compute-bound.
    Mixed16,
    /// Like `Triad`, with 64 more multiply-adds per element: mostly compute-bound.
    Mixed64,
    /// Latency-bound: a pointer chase in which each load gives the next address.
    Chase,
    /// A small model's training step: `tensor`, `triad` and `fma` in turn, with fixed work.
    Step,
}

/// Shape of one launch on a device, and the work of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub grid: u32,
    pub threads: u32,
    /// Units of work per round of the whole grid.
    pub work_per_round: f64,
}

impl Kernel {
    pub const ALL: [Self; 7] =
        [Self::Tensor, Self::Fma, Self::Triad, Self::Mixed16, Self::Mixed64, Self::Chase, Self::Step];

    /// Returns its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Fma => "fma",
            Self::Triad => "triad",
            Self::Mixed16 => "mixed16",
            Self::Mixed64 => "mixed64",
            Self::Chase => "chase",
            Self::Step => "step",
        }
    }

    /// Returns the kernel with this name.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn of_name(name: &str) -> Result<Self, GpuError> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name).ok_or_else(|| GpuError::Value {
            field: "kernel",
            value: format!("\"{name}\""),
            permitted: Self::ALL.map(Self::name).join(", "),
        })
    }

    /// Returns the unit of its work.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Tensor | Self::Fma => "FLOP",
            Self::Triad | Self::Mixed16 | Self::Mixed64 => "B",
            Self::Chase => "loads",
            Self::Step => "steps",
        }
    }

    /// Returns the name of its function in the module. For a step, that of its first part.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Tensor | Self::Step => "tensor",
            Self::Fma => "fma_loop",
            Self::Triad | Self::Mixed16 | Self::Mixed64 => "triad",
            Self::Chase => "chase",
        }
    }

    /// Returns the multiply-adds per element beyond the triad's own.
    pub(crate) fn fmas(self) -> u32 {
        match self {
            Self::Mixed16 => 16,
            Self::Mixed64 => 64,
            _ => 0,
        }
    }

    /// Returns its launch on a device with `multiprocessors` multiprocessors, over arrays of `elements` elements of 16
    /// bytes each.
    #[must_use]
    pub fn shape(self, multiprocessors: u32, elements: u64) -> Shape {
        let of = |per: u32, threads: u32| (multiprocessors * per, threads);
        let ((grid, threads), per_thread) = match self {
            Self::Tensor => (of(4, 128), CHAINS * FLOP_PER_PRODUCT / 32.0),
            Self::Fma => (of(4, 256), FLOP_PER_ROUND_AND_THREAD),
            Self::Triad | Self::Mixed16 | Self::Mixed64 => {
                let (grid, threads) = of(4, 512);
                let work_per_round = elements as f64 * BYTES_PER_ELEMENT;
                return Shape { grid, threads, work_per_round };
            }
            Self::Chase => (of(1, 32), 1.0 / 32.0),
            Self::Step => return Shape { grid: 0, threads: 0, work_per_round: 1.0 },
        };
        Shape { grid, threads, work_per_round: f64::from(grid) * f64::from(threads) * per_thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_the_triad_moves_each_array_once() {
        assert_eq!(Kernel::Triad.shape(132, 1000).work_per_round, 48_000.0);
    }

    #[test]
    fn a_round_of_products_is_four_for_each_warp() {
        // 132 * 4 blocks of 4 warps, 4 chains, 2 * 16 * 8 * 16 FLOP each
        assert_eq!(Kernel::Tensor.shape(132, 0).work_per_round, 132.0 * 4.0 * 4.0 * 4.0 * 4096.0);
    }

    #[test]
    fn a_round_of_the_chase_is_one_load_for_each_multiprocessor() {
        assert_eq!(Kernel::Chase.shape(132, 0).work_per_round, 132.0);
    }

    #[test]
    fn a_round_of_steps_is_one_step() {
        assert_eq!(Kernel::Step.shape(132, 1000).work_per_round, 1.0);
        assert!(STEP.iter().all(|(kernel, _)| *kernel != Kernel::Step));
    }

    #[test]
    fn every_kernel_is_found_by_its_name() {
        for kernel in Kernel::ALL {
            assert_eq!(Kernel::of_name(kernel.name()).ok(), Some(kernel));
        }
        let message = Kernel::of_name("gemm").unwrap_err().to_string();
        assert_eq!(message, "kernel is \"gemm\"; it must be tensor, fma, triad, mixed16, mixed64, chase, step");
    }

    #[test]
    fn the_compiled_kernels_are_those_of_the_source_beside_them() {
        let module = include_str!("kernels/kernels.ptx");
        for kernel in Kernel::ALL {
            assert!(module.contains(&format!(".entry {}(", kernel.function())), "{kernel:?}");
        }
        assert!(module.contains(".entry copy("));
    }
}
