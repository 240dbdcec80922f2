//! A program that is executed without a shell.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null;

use crate::farm::command::Direct;

/// A program as the kernel takes it: with nothing left to allocate, which a new process may not do.
pub(super) struct Program {
    /// The texts that the pointers are into.
    _words: Vec<CString>,
    arguments: Vec<*const c_char>,
    places: Vec<CString>,
    stdin: Option<CString>,
    stdout: Option<CString>,
}

impl Program {
    /// Returns `None` if a text holds a 0 byte.
    pub fn of(direct: Direct) -> Option<Self> {
        let texts = |texts: Vec<Vec<u8>>| texts.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>().ok();
        let file = |file: Option<Vec<u8>>| file.map(CString::new).transpose().ok();
        let words = texts(direct.words)?;
        let arguments = words.iter().map(|word| word.as_ptr()).chain([null()]).collect();
        let (stdin, stdout) = (file(direct.stdin)?, file(direct.stdout)?);
        Some(Self { _words: words, arguments, places: texts(direct.places)?, stdin, stdout })
    }

    /// Executes the program. Returns if that is impossible: a shell then does what it can, or says why not.
    ///
    /// # Safety
    /// The calling process ends if it does not execute another program.
    pub unsafe fn execute(&self) {
        let (reads, writes) = (libc::O_RDONLY, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
        let opened = [(&self.stdin, reads, 0), (&self.stdout, writes, 1)]
            .into_iter()
            // SAFETY: as the caller promises.
            .all(|(file, flags, to)| file.as_ref().is_none_or(|file| unsafe { open(file, flags, to) }));
        if !opened {
            return;
        }
        for place in &self.places {
            // SAFETY: live texts, and a list of such that ends with null.
            unsafe { libc::execv(place.as_ptr(), self.arguments.as_ptr()) };
            let error = io::Error::last_os_error().raw_os_error();
            if !matches!(error, Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)) {
                return; // it is there, and a script of the shell's, for instance
            }
        }
    }
}

/// Opens a regular file under a number. Returns whether it could: what may wait, such as a FIFO, is left to a shell.
///
/// # Safety
/// Nothing else may use the number.
unsafe fn open(file: &CStr, flags: c_int, to: c_int) -> bool {
    // SAFETY: a live text, integers, and a live structure.
    unsafe {
        let found = libc::open(file.as_ptr(), flags | libc::O_NONBLOCK | libc::O_CLOEXEC, 0o666);
        let mut state = MaybeUninit::<libc::stat>::uninit();
        if found < 0 || libc::fstat(found, state.as_mut_ptr()) < 0 {
            return false;
        }
        let is_regular = state.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG;
        is_regular && libc::fcntl(found, libc::F_SETFL, flags & libc::O_ACCMODE) == 0 && libc::dup2(found, to) == to
    }
}
