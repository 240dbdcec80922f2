//! What sorting costs, and how sorted results are compared, for the programs that sort.

/// Comparisons in a sort of `n` keys: n log2 n, rounded up.
pub(crate) fn comparisons(n: u64) -> u64 {
    (n as f64 * (n.max(1) as f64).log2()).ceil() as u64
}

/// Comparisons in a search among `n` sorted keys.
pub(crate) fn search(n: u64) -> u64 {
    u64::from((n + 1).next_power_of_two().trailing_zeros())
}

/// Whether the results of ranks, one after the other, are `keys` in order.
pub(crate) fn check(results: &[Vec<u64>], mut keys: Vec<u64>) -> Result<(), String> {
    keys.sort_unstable();
    let found: usize = results.iter().map(Vec::len).sum();
    if found != keys.len() {
        return Err(format!("{found} keys came out of {}", keys.len()));
    }
    let places = results.iter().enumerate().flat_map(|(rank, keys)| keys.iter().map(move |key| (rank, key)));
    for (place, ((rank, found), wanted)) in places.zip(&keys).enumerate() {
        if found != wanted {
            return Err(format!("key {place} in order, at rank {rank}, is {found} instead of {wanted}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_halving() {
        assert_eq!((comparisons(0), comparisons(1), comparisons(8)), (0, 0, 24));
        assert_eq!((search(0), search(1), search(63), search(64)), (0, 1, 6, 7));
    }

    #[test]
    fn a_key_lost_changed_or_out_of_place_is_found() {
        assert_eq!(check(&[vec![1, 2], vec![], vec![3]], vec![3, 1, 2]), Ok(()));
        assert!(check(&[vec![1, 2]], vec![3, 1, 2]).is_err());
        assert!(check(&[vec![2, 1], vec![3]], vec![3, 1, 2]).is_err());
        assert!(check(&[vec![1, 1], vec![3]], vec![3, 1, 2]).is_err());
    }
}
