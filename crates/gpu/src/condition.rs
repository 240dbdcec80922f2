//! The state of the device while it is measured: clocks, power, temperature, throttling.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use serde::Serialize;

/// Readings of the device's management library at one moment. `None` if the library does not provide a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Condition {
    /// Clock of the multiprocessors, MHz.
    pub sm_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_mhz: Option<u32>,
    pub power_w: Option<f64>,
    pub celsius: Option<u32>,
    /// Performance state, 0 the fastest.
    pub state: Option<u32>,
    /// Reasons for reduced clocks: the bits of `nvmlClocksEventReasons`.
    pub throttle: Option<u64>,
}

/// The management library, if the machine has it and it lists the device.
pub(crate) struct Manager {
    library: Nvml,
    uuid: String,
}

impl Manager {
    pub(crate) fn of(uuid: &str) -> Option<Self> {
        let library = Nvml::init().ok()?;
        library.device_by_uuid(uuid).is_ok().then(|| Self { uuid: uuid.to_owned(), library })
    }

    pub(crate) fn condition(&self) -> Condition {
        let Ok(device) = self.library.device_by_uuid(self.uuid.as_str()) else { return Condition::default() };
        Condition {
            sm_mhz: device.clock_info(Clock::SM).ok(),
            memory_mhz: device.clock_info(Clock::Memory).ok(),
            power_w: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            celsius: device.temperature(TemperatureSensor::Gpu).ok(),
            state: device.performance_state().ok().map(|state| state as u32),
            throttle: device.current_throttle_reasons().ok().map(|reasons| reasons.bits()),
        }
    }

    /// Returns the generation and the lanes of the link to the host.
    pub(crate) fn link(&self) -> (Option<u32>, Option<u32>) {
        let device = self.library.device_by_uuid(self.uuid.as_str()).ok();
        let device = device.as_ref();
        (
            device.and_then(|device| device.current_pcie_link_gen().ok()),
            device.and_then(|device| device.current_pcie_link_width().ok()),
        )
    }
}
