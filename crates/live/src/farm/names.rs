//! The names of a run's inputs, of which there may be a million: paths, or values.
//!
//! Each name is kept without its directory, and a directory once for the names that follow each other in it. A million
//! paths take some 35 MB so, where a list of them takes 130 MB. They are sorted and made unique by their places only.

use std::cmp::Ordering;

/// A list of names.
///
/// ```
/// use crosswind_live::farm::names::Names;
///
/// let mut names = Names::default();
/// for name in ["in/b", "in/a", "other", "in/b"] {
///     names.push(name.as_bytes());
/// }
/// names.sort_from(0);
/// names.remove_repeated();
/// let all: Vec<_> = (0..names.len()).map(|at| names.get(at).unwrap()).collect();
/// assert_eq!(all, [b"in/a".to_vec(), b"in/b".to_vec(), b"other".to_vec()]);
/// ```
#[derive(Debug, Default)]
pub struct Names {
    directories: Texts,
    /// What follows the last slash.
    lasts: Texts,
    /// The directory of each of `lasts`.
    directory_of: Vec<u32>,
    /// Numbers of `lasts` in the order of the list.
    order: Vec<u32>,
}

#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[at]]
    }
}

impl Names {
    /// Appends a name.
    ///
    /// # Panics
    /// With more than four thousand million names.
    pub fn push(&mut self, name: &[u8]) {
        let (directory, last) = name.split_at(name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1));
        let known = self.directories.ends.len();
        if known == 0 || self.directories.get(known - 1) != directory {
            self.directories.push(directory);
        }
        let number = |length: usize| u32::try_from(length).expect("names are numbered by 32 bits");
        self.directory_of.push(number(self.directories.ends.len() - 1));
        self.order.push(number(self.lasts.ends.len()));
        self.lasts.push(last);
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the name at a position, or `None` beyond the last one.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Vec<u8>> {
        let number = *self.order.get(at)?;
        Some([self.directory(number), self.last(number)].concat())
    }

    /// Sorts the names from a place on by their bytes.
    pub fn sort_from(&mut self, begin: usize) {
        let mut order = std::mem::take(&mut self.order);
        if let Some(sorted) = order.get_mut(begin..) {
            sorted.sort_unstable_by(|one, other| self.compared(*one, *other));
        }
        self.order = order;
    }

    /// Removes each name that is there before, and keeps the order.
    pub fn remove_repeated(&mut self) {
        let places = u32::try_from(self.order.len()).expect("names are numbered by 32 bits");
        let mut sorted: Vec<u32> = (0..places).collect();
        let number = |place: u32| self.order[place as usize];
        sorted.sort_unstable_by(|one, other| self.compared(number(*one), number(*other)).then(one.cmp(other)));
        sorted.dedup_by(|next, first| self.compared(number(*next), number(*first)).is_eq());
        sorted.sort_unstable();
        self.order = sorted.into_iter().map(number).collect();
    }

    fn directory(&self, number: u32) -> &[u8] {
        self.directories.get(self.directory_of[number as usize] as usize)
    }

    fn last(&self, number: u32) -> &[u8] {
        self.lasts.get(number as usize)
    }

    fn compared(&self, one: u32, other: u32) -> Ordering {
        if self.directory_of[one as usize] == self.directory_of[other as usize] {
            return self.last(one).cmp(self.last(other));
        }
        let whole = |number| self.directory(number).iter().chain(self.last(number));
        whole(one).cmp(whole(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(names: &Names) -> Vec<Vec<u8>> {
        (0..names.len()).map(|at| names.get(at).unwrap()).collect()
    }

    fn names(given: &[Vec<u8>]) -> Names {
        let mut names = Names::default();
        given.iter().for_each(|name| names.push(name));
        names
    }

    fn drawn() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let name = proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'a'), Just(b'.'), any::<u8>()], 0..6);
        proptest::collection::vec(name, 0..40)
    }

    proptest! {
        #[test]
        fn names_are_those_that_were_given(given in drawn()) {
            prop_assert_eq!(all(&names(&given)), given);
        }

        #[test]
        fn they_are_sorted_as_whole_names_from_a_place_on(given in drawn(), begin in 0..50_usize) {
            let mut list = names(&given);
            list.sort_from(begin);
            let mut expected = given;
            let begin = begin.min(expected.len());
            expected[begin..].sort();
            prop_assert_eq!(all(&list), expected);
        }

        #[test]
        fn of_equal_names_the_first_stays(given in drawn(), sorted in any::<bool>()) {
            let mut list = names(&given);
            let mut expected = given;
            if sorted {
                list.sort_from(0);
                expected.sort();
            }
            list.remove_repeated();
            let mut seen = std::collections::HashSet::new();
            expected.retain(|name| seen.insert(name.clone()));
            prop_assert_eq!(all(&list), expected);
        }
    }

    #[test]
    fn beyond_the_end_there_is_none() {
        assert_eq!(names(&[]).get(0), None);
        assert!(names(&[]).is_empty());
    }
}
