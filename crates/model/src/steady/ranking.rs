//! Sorting of children by a key: few at most nodes, a million at some.

use std::cmp::Ordering;

/// Up to this many, insertion sort beats algorithms for large inputs.
pub(crate) const FEW: usize = 48;

pub(crate) fn higher(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    b.0.total_cmp(&a.0)
}

/// Sorts the highest key first. Ties keep their order.
pub(crate) fn highest_first(keyed: &mut [(f64, u32)]) {
    if keyed.len() > FEW {
        keyed.sort_by(higher);
    } else {
        insertion_sort(keyed);
    }
}

/// Takes one pass and a few moves on nearly sorted input.
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
