//! Slab of values indexed by number. Numbers of removed values are reused.

pub(super) struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub const fn new() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }

    /// Adds a value and returns its number.
    #[inline]
    pub fn add(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = thing;
            return number;
        }
        self.things.push(thing);
        (self.things.len() - 1) as u32
    }

    /// Releases a number. Its value remains readable until the number is reused.
    #[inline]
    pub fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.things[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }
}
