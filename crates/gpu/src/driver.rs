//! The CUDA driver, loaded at run time: owners of its handles, and its calls returning results.
//!
//! Holds the `unsafe` calls of the driver. A handle is created in the context made current by [`Context::enter`], and
//! is used only by threads that have entered it.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use sys::CUdevice_attribute as Attribute;

use crate::error::GpuError;

/// CUDA 12.0, in the driver's encoding: the minimum for the module's PTX.
const LEAST_DRIVER: i32 = 12_000;

fn named(call: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| {
        let why =
            error.error_string().map_or_else(|_| format!("{error:?}"), |text| text.to_string_lossy().into_owned());
        GpuError::Driver { call, why }
    }
}

/// One device and its primary context, which is retained as long as anything created in it exists.
#[derive(Debug)]
pub(crate) struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: a context may be current in several threads at once, and every call of the driver is thread-safe.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn open(index: usize) -> Result<Arc<Self>, GpuError> {
        // SAFETY: loads the library by its name, as any use of it would.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver);
        }
        result::init().map_err(named("cuInit"))?;
        let mut version = 0;
        // SAFETY: one live integer.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(named("cuDriverGetVersion"))?;
        if version < LEAST_DRIVER {
            let found = format!("{}.{}", version / 1000, version % 1000 / 10);
            return Err(GpuError::TooOld { what: "the driver's CUDA version", found, least: "12.0" });
        }
        let count = result::device::get_count().map_err(named("cuDeviceGetCount"))? as usize;
        let ordinal = i32::try_from(index).ok().filter(|_| index < count).ok_or(GpuError::NoDevice { index, count })?;
        let device = result::device::get(ordinal).map_err(named("cuDeviceGet"))?;
        // SAFETY: a device that the driver has just returned.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(named("cuDevicePrimaryCtxRetain"))?;
        let found = Arc::new(Self { device, context });
        found.enter()?;
        Ok(found)
    }

    /// Makes the context current in this thread.
    pub(crate) fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(named("cuCtxSetCurrent"))
    }

    pub(crate) fn name(&self) -> Result<String, GpuError> {
        result::device::get_name(self.device).map_err(named("cuDeviceGetName"))
    }

    /// Returns the device's UUID, as printed by `nvidia-smi -L`.
    pub(crate) fn uuid(&self) -> Result<String, GpuError> {
        let id = result::device::get_uuid(self.device).map_err(named("cuDeviceGetUuid"))?;
        let hex: Vec<String> = id.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
        Ok(format!(
            "GPU-{}-{}-{}-{}-{}",
            hex[..4].concat(),
            hex[4..6].concat(),
            hex[6..8].concat(),
            hex[8..10].concat(),
            hex[10..].concat()
        ))
    }

    pub(crate) fn attribute(&self, attribute: Attribute) -> Result<u32, GpuError> {
        // SAFETY: the device is one of the driver's.
        let value = unsafe { result::device::get_attribute(self.device, attribute) };
        value.map(|value| value.max(0) as u32).map_err(named("cuDeviceGetAttribute"))
    }

    /// Returns the free and the total memory, bytes.
    pub(crate) fn memory() -> Result<(usize, usize), GpuError> {
        result::mem_get_info().map_err(named("cuMemGetInfo"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A queue of work on the device.
#[derive(Debug)]
pub(crate) struct Stream(sys::CUstream, #[allow(dead_code)] Arc<Context>);

// SAFETY: the driver's calls on streams are thread-safe.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a stream of the highest (`first`) or the lowest priority.
    pub(crate) fn new(context: &Arc<Context>, first: bool) -> Result<Self, GpuError> {
        let (least, greatest) = result::stream::get_priority_range().map_err(named("cuCtxGetStreamPriorityRange"))?;
        let priority = if first { greatest } else { least };
        result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority)
            .map(|stream| Self(stream, Arc::clone(context)))
            .map_err(named("cuStreamCreateWithPriority"))
    }

    /// Returns the stream's handle, for other libraries of this process. Valid while the stream lives.
    pub(crate) fn handle(&self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn synchronize(&self) -> Result<(), GpuError> {
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.0) }.map_err(named("cuStreamSynchronize"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and not used after this.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

/// A timestamp on the device's clock.
#[derive(Debug)]
pub(crate) struct Event(sys::CUevent, #[allow(dead_code)] Arc<Context>);

// SAFETY: the driver's calls on events are thread-safe.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, GpuError> {
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT);
        event.map(|event| Self(event, Arc::clone(context))).map_err(named("cuEventCreate"))
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: both are alive, and of one context.
        unsafe { result::event::record(self.0, stream.0) }.map_err(named("cuEventRecord"))
    }

    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.0) }.map_err(named("cuEventSynchronize"))
    }

    /// Returns the time from another event to this one, s. Negative if this one came first.
    pub(crate) fn since(&self, other: &Self) -> Result<f64, GpuError> {
        // SAFETY: both are alive; if one is not recorded, the driver returns an error.
        let elapsed = unsafe { result::event::elapsed(other.0, self.0) };
        elapsed.map(|milliseconds| f64::from(milliseconds) / 1e3).map_err(named("cuEventElapsedTime"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and not used after this.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

#[derive(Debug)]
pub(crate) struct Buffer {
    at: sys::CUdeviceptr,
    pub(crate) bytes: usize,
    #[allow(dead_code)]
    context: Arc<Context>,
}

impl Buffer {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, GpuError> {
        // SAFETY: plain allocation in the current context.
        let at = unsafe { result::malloc_sync(bytes) }.map_err(named("cuMemAlloc"))?;
        let found = Self { at, bytes, context: Arc::clone(context) };
        // SAFETY: exactly the bytes allocated.
        unsafe { result::memset_d8_sync(at, 0, bytes) }.map_err(named("cuMemsetD8"))?;
        Ok(found)
    }

    pub(crate) fn fill(&self, words: &[u32]) -> Result<(), GpuError> {
        assert!(size_of_val(words) <= self.bytes, "more words than the buffer holds");
        // SAFETY: no more than the buffer holds, as checked.
        unsafe { result::memcpy_htod_sync(self.at, words) }.map_err(named("cuMemcpyHtoD"))
    }

    /// Returns the address of a byte.
    pub(crate) fn at(&self, offset: usize) -> u64 {
        assert!(offset < self.bytes, "beyond the buffer's end");
        self.at + offset as u64
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not used after this.
        let _ = unsafe { result::free_sync(self.at) };
    }
}

/// Host memory that the driver may copy.
#[derive(Debug)]
pub(crate) enum HostBuffer {
    /// Page-locked; the device sees it at the same address.
    Pinned(*mut c_void, usize),
    Pageable(Vec<u8>),
}

// SAFETY: memory without a thread of its own; what is copied into it is never read here.
unsafe impl Send for HostBuffer {}
// SAFETY: as above.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    pub(crate) fn pinned(bytes: usize) -> Result<Self, GpuError> {
        // SAFETY: plain allocation in the current context, portable to all threads.
        let at = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        let at = at.map_err(named("cuMemHostAlloc"))?;
        // SAFETY: exactly the bytes just allocated; this also faults in the pages before anything is timed.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 1, bytes) };
        Ok(Self::Pinned(at, bytes))
    }

    pub(crate) fn pageable(bytes: usize) -> Self {
        Self::Pageable(vec![1; bytes])
    }

    /// Writes bytes, starting at `offset`.
    ///
    /// # Safety
    /// No other thread and no device copy may use this part of the buffer during the call.
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        let size = match self {
            Self::Pinned(_, size) => *size,
            Self::Pageable(memory) => memory.len(),
        };
        assert!(bytes.len() <= size && offset <= size - bytes.len(), "beyond the buffer's end");
        // SAFETY: within the buffer, as checked; the caller guarantees that nothing else uses this part.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset).cast(), bytes.len()) }
    }

    /// Returns the address of a byte.
    pub(crate) fn at(&self, offset: usize) -> *mut c_void {
        let (at, bytes) = match self {
            Self::Pinned(at, bytes) => (at.cast::<u8>(), *bytes),
            Self::Pageable(memory) => (memory.as_ptr().cast_mut(), memory.len()),
        };
        assert!(offset < bytes, "beyond the buffer's end");
        at.wrapping_add(offset).cast()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Self::Pinned(at, _) = self {
            // SAFETY: allocated by the driver in `pinned`, and not used after this.
            let _ = unsafe { result::free_host(*at) };
        }
    }
}

/// The kernels, compiled for the device.
#[derive(Debug)]
pub(crate) struct Module(sys::CUmodule, #[allow(dead_code)] Arc<Context>);

/// One kernel of a module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(sys::CUfunction);

// SAFETY: handles without a thread of their own.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    pub(crate) fn new(context: &Arc<Context>, ptx: &str) -> Result<Self, GpuError> {
        let text =
            CString::new(ptx).map_err(|error| GpuError::Driver { call: "cuModuleLoadData", why: error.to_string() })?;
        // SAFETY: a NUL-terminated string.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) };
        module.map(|module| Self(module, Arc::clone(context))).map_err(named("cuModuleLoadData"))
    }

    pub(crate) fn function(&self, name: &str) -> Result<Function, GpuError> {
        let name = CString::new(name)
            .map_err(|error| GpuError::Driver { call: "cuModuleGetFunction", why: error.to_string() })?;
        // SAFETY: the module is alive; the function is used only while it is.
        unsafe { result::module::get_function(self.0, name) }.map(Function).map_err(named("cuModuleGetFunction"))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in `new`; no kernel of it still runs, since every launch is waited for.
        let _ = unsafe { result::module::unload(self.0) };
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    Address(u64),
    Word(u32),
}

impl Function {
    /// Launches the kernel on a grid of thread blocks.
    ///
    /// # Safety
    /// The arguments must match the kernel, and its memory must outlive the launch.
    pub(crate) unsafe fn launch(
        self,
        grid: u32,
        threads: u32,
        stream: &Stream,
        arguments: &[Argument],
    ) -> Result<(), GpuError> {
        let mut pointers: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Address(value) => ptr::from_ref(value).cast_mut().cast(),
                Argument::Word(value) => ptr::from_ref(value).cast_mut().cast(),
            })
            .collect();
        // SAFETY: the driver copies the arguments before it returns; the caller guarantees the rest.
        unsafe { result::launch_kernel(self.0, (grid, 1, 1), (threads, 1, 1), 0, stream.0, &mut pointers) }
            .map_err(named("cuLaunchKernel"))
    }
}

/// Copies into the device.
///
/// # Safety
/// Both ends hold at least `bytes` bytes and outlive the copy.
pub(crate) unsafe fn to_device(to: u64, from: *const c_void, bytes: usize, stream: &Stream) -> Result<(), GpuError> {
    // SAFETY: guaranteed by the caller.
    unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, stream.0) }.result().map_err(named("cuMemcpyHtoDAsync"))
}

/// Copies out of the device.
///
/// # Safety
/// Both ends hold at least `bytes` bytes and outlive the copy.
pub(crate) unsafe fn to_host(to: *mut c_void, from: u64, bytes: usize, stream: &Stream) -> Result<(), GpuError> {
    // SAFETY: guaranteed by the caller.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, stream.0) }.result().map_err(named("cuMemcpyDtoHAsync"))
}

/// Copies within the device.
///
/// # Safety
/// Both ends hold at least `bytes` bytes and outlive the copy.
pub(crate) unsafe fn within(to: u64, from: u64, bytes: usize, stream: &Stream) -> Result<(), GpuError> {
    // SAFETY: guaranteed by the caller.
    unsafe { result::memcpy_dtod_async(to, from, bytes, stream.0) }.map_err(named("cuMemcpyDtoDAsync"))
}
