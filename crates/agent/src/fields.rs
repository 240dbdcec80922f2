//! Encoding of frames, shared by all protocols: a length (32 bits, big-endian), one byte for the kind, then fields.
//! Pure functions.
//!
//! The kinds and their fields are defined in [`crate::frame`] (agents of a farm) and in `ranks::wire` of
//! `crosswind-live` (ranks of a program).

/// Why bytes do not form a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds the limit.
    #[error("a frame of {bytes} bytes; at most {limit} are read")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a frame of kind {0}, which this version does not know")]
    Kind(u8),
    /// The fields do not match the kind.
    #[error("a frame of kind {kind} with {what}")]
    Fields { kind: u8, what: &'static str },
}

/// Decodes a frame's length from its first four bytes.
///
/// # Errors
/// If it is larger than `limit`, or 0, which leaves no byte for the kind.
pub fn length(bytes: [u8; 4], limit: usize) -> Result<usize, FrameError> {
    let length = u32::from_be_bytes(bytes) as usize;
    if length > limit {
        return Err(FrameError::TooLarge { bytes: length, limit });
    }
    if length == 0 {
        return Err(FrameError::Fields { kind: 0, what: "no bytes at all" });
    }
    Ok(length)
}

/// Begins a frame with a placeholder for its length. Returns the offset of the placeholder, for [`end`].
pub fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend([0; 4]);
    start
}

/// Ends the frame that began at `start`: writes its length, including the `follow` bytes of body sent after `out`.
pub fn end(start: usize, follow: usize, out: &mut [u8]) {
    let length = (out.len() - start - 4 + follow) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a kind and a first field of 32 bits.
pub fn word(out: &mut Vec<u8>, kind: u8, value: u32) {
    out.push(kind);
    out.extend(value.to_be_bytes());
}

/// Appends a kind and a first field of 64 bits.
pub fn long(out: &mut Vec<u8>, kind: u8, value: u64) {
    out.push(kind);
    out.extend(value.to_be_bytes());
}

/// Reads fields from the front of a frame's bytes.
pub struct Reader<'a> {
    pub kind: u8,
    pub bytes: &'a [u8],
}

impl Reader<'_> {
    /// Returns an error about the fields.
    ///
    /// # Errors
    /// Always.
    pub fn wrong<T>(&self, what: &'static str) -> Result<T, FrameError> {
        Err(FrameError::Fields { kind: self.kind, what })
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let Some((&taken, rest)) = self.bytes.split_first_chunk::<N>() else { return self.wrong("too few bytes") };
        self.bytes = rest;
        Ok(taken)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// If none is left.
    pub fn byte(&mut self) -> Result<u8, FrameError> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Reads a 32-bit big-endian number.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads a 64-bit big-endian number.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Reads one byte, 0 or 1.
    ///
    /// # Errors
    /// If none is left, or it is neither.
    pub fn flag(&mut self) -> Result<bool, FrameError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong("a flag that is neither 0 nor 1"),
        }
    }

    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).to_vec()
    }

    /// Reads all remaining bytes as text.
    pub fn text(&mut self) -> Result<String, FrameError> {
        let bytes = self.rest();
        self.as_text(bytes)
    }

    /// Converts bytes to text.
    ///
    /// # Errors
    /// If they are not UTF-8.
    pub fn as_text(&self, bytes: Vec<u8>) -> Result<String, FrameError> {
        String::from_utf8(bytes).or_else(|_| self.wrong("text that is not UTF-8"))
    }
}
