//! Memory whose physical pages are drawn at random.
//!
//! Which physical pages an array gets decides how well it fits the caches, for as long as it lives. The papers'
//! matrix computes up to 10 % faster in some pages than in others, and loses 5 % more or less to the same traffic. A
//! process that frees an array and allocates another gets the same pages back. So the pages are randomised: between
//! the array's own pages, others are touched at random and freed later.

use std::io;
use std::ops::{Deref, DerefMut};

use crosswind_access::token;
use crosswind_schema::random::Random;
use memmap2::MmapMut;

/// Pages touched and freed for each one kept, up to [`MOST_OTHERS`] bytes.
const OTHERS: usize = 3;
/// Most bytes touched and freed: arrays larger than the caches do not depend on their pages.
const MOST_OTHERS: usize = 16_000_000;
const PAGE: usize = 4096;

/// Integers, initially zero, in separate pages.
pub struct Pages {
    map: MmapMut,
    count: usize,
}

impl Pages {
    /// Allocates `count` integers in pages drawn at random.
    ///
    /// # Errors
    /// When memory is short, or the system provides no random numbers.
    pub fn drawn(count: usize) -> io::Result<Self> {
        let mut own = Self::untouched(count)?;
        let pages = own.bytes().div_ceil(PAGE);
        let mut others = Self::untouched((OTHERS * own.bytes()).min(MOST_OTHERS) / size_of::<i32>())?;
        let mut left = others.bytes() / PAGE;
        let mut random = Random::seeded(u64::from_ne_bytes(token::random()?));
        for page in 0..pages {
            // All orders of the remaining pages, own ones and others, are equally likely.
            while random.below((pages - page + left) as u64) < left as u64 {
                left -= 1;
                others.touch(left);
            }
            own.touch(page);
        }
        Ok(own)
    }

    fn untouched(count: usize) -> io::Result<Self> {
        Ok(Self { map: MmapMut::map_anon(count.max(1) * size_of::<i32>())?, count })
    }

    fn bytes(&self) -> usize {
        self.map.len()
    }

    fn touch(&mut self, page: usize) {
        if let Some(first) = self.get_mut(page * PAGE / size_of::<i32>()) {
            // SAFETY: a live place; volatile, so that the page is really taken now.
            unsafe { std::ptr::write_volatile(first, 0) };
        }
    }
}

impl Deref for Pages {
    type Target = [i32];

    fn deref(&self) -> &[i32] {
        // SAFETY: the map has `count` integers, zeroed by the kernel, and begins at a page.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.count) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [i32] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_integers_are_there_and_zero() {
        for count in [0, 1, 1023, 1024, 1025, 3_000_000] {
            let mut pages = Pages::drawn(count).expect("memory");
            assert_eq!(pages.len(), count);
            assert!(pages.iter().all(|value| *value == 0));
            pages.fill(7);
            assert_eq!(pages.iter().filter(|value| **value == 7).count(), count);
        }
    }
}
