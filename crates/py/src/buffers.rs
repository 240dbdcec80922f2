//! Bytes of Rust as buffers of Python, without a copy.

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};
use pyo3::ffi;
use pyo3::prelude::*;

/// A task's input: a read-only buffer.
#[pyclass(frozen, module = "crosswind._core")]
pub struct Input(pub Arc<Vec<u8>>);

#[pymethods]
impl Input {
    /// # Safety
    /// As the buffer protocol requires: `view` is valid or null.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.get().0;
        // SAFETY: the bytes live as long as this object, which the view keeps alive, and the view is read-only.
        unsafe { fill(&slf, view, bytes.as_ptr().cast_mut(), bytes.len(), true, flags) }
    }
}

/// The content of a file, mapped: a buffer whose changes are this process's own.
#[pyclass(frozen, module = "crosswind._core")]
pub struct Mapped(MmapMut);

#[pymethods]
impl Mapped {
    /// Maps the first `size` bytes of an open file, which no process may change or cut as long as this object lives.
    #[new]
    fn new(descriptor: RawFd, size: usize) -> PyResult<Self> {
        // SAFETY: the caller's descriptor is open during this call, and the caller answers for the file's content.
        let map = unsafe { MmapOptions::new().len(size).map_copy(&BorrowedFd::borrow_raw(descriptor)) };
        Ok(Self(map?))
    }

    /// # Safety
    /// As the buffer protocol requires: `view` is valid or null.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let map = &slf.get().0;
        // SAFETY: the map lives as long as this object, which the view keeps alive. Rust never looks at its bytes.
        unsafe { fill(&slf, view, map.as_ptr().cast_mut(), map.len(), false, flags) }
    }
}

/// # Safety
/// `start` is valid for `length` bytes as long as `owner` lives, and for writing unless `readonly`; `view` is valid or
/// null.
unsafe fn fill<T>(
    owner: &Bound<'_, T>,
    view: *mut ffi::Py_buffer,
    start: *mut u8,
    length: usize,
    readonly: bool,
    flags: c_int,
) -> PyResult<()> {
    let length = length as ffi::Py_ssize_t;
    // SAFETY: the caller's.
    match unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start.cast(), length, c_int::from(readonly), flags) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(owner.py())),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mapped>()
}
