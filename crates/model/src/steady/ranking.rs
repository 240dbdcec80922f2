//! Putting children in order by a key: few at most nodes, a million at some.

use std::cmp::Ordering;

/// Up to this many, insertion beats what is made for many.
pub(crate) const FEW: usize = 48;

pub(crate) fn higher(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    b.0.total_cmp(&a.0)
}

/// Highest key first; equal ones in the order in which they came.
pub(crate) fn highest_first(keyed: &mut [(f64, u32)]) {
    if keyed.len() > FEW {
        keyed.sort_by(higher);
    } else {
        insertion_sort(keyed);
    }
}

/// A pass and a few moves where they are nearly in order already.
fn insertion_sort(keyed: &mut [(f64, u32)]) {
    for end in 1..keyed.len() {
        let moving = keyed[end];
        let mut at = end;
        while at > 0 && keyed[at - 1].0 < moving.0 {
            keyed[at] = keyed[at - 1];
            at -= 1;
        }
        keyed[at] = moving;
    }
}
