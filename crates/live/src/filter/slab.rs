//! A slab whose keys never refer to a later entry in the same place.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    place: u32,
    life: u32,
}

impl Key {
    /// Number of generations that fit into a key of 56 bits.
    const LIVES: u32 = 1 << 24;

    /// Returns the key as a number of 56 bits.
    pub fn number(self) -> u64 {
        u64::from(self.life) << 32 | u64::from(self.place)
    }

    /// Converts a number of 56 bits to a key.
    pub fn from_number(number: u64) -> Self {
        Self { place: number as u32, life: (number >> 32) as u32 % Self::LIVES }
    }
}

#[derive(Debug)]
struct Place<T> {
    life: u32,
    thing: Option<T>,
}

#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub fn insert(&mut self, thing: T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { life: 0, thing: None });
            self.places.len() as u32 - 1
        });
        let at = &mut self.places[place as usize];
        at.thing = Some(thing);
        Key { place, life: at.life }
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        let at = self.places.get_mut(key.place as usize).filter(|at| at.life == key.life)?;
        let thing = at.thing.take()?;
        at.life = (at.life + 1) % Key::LIVES;
        self.free.push(key.place);
        Some(thing)
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        self.places.get(key.place as usize).filter(|at| at.life == key.life)?.thing.as_ref()
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.places.get_mut(key.place as usize).filter(|at| at.life == key.life)?.thing.as_mut()
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn keys(&self) -> Vec<Key> {
        let taken =
            |(place, at): (usize, &Place<T>)| at.thing.is_some().then_some(Key { place: place as u32, life: at.life });
        self.places.iter().enumerate().filter_map(taken).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlives_its_thing_and_names_no_other() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"second")));
        assert_eq!(Key::from_number(second.number()), second);
        assert_eq!((slab.remove(first), slab.len(), slab.keys()), (None, 1, vec![second]));
    }
}
