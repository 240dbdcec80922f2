//! Costs of sorting, and checks of sorted results, for the programs that sort.

/// Returns the comparisons of a sort of `n` keys: n log2 n, rounded up.
pub(crate) fn comparisons(n: u64) -> u64 {
    (n as f64 * (n.max(1) as f64).log2()).ceil() as u64
}

/// Returns the comparisons of a search among `n` sorted keys.
pub(crate) fn search(n: u64) -> u64 {
    u64::from((n + 1).next_power_of_two().trailing_zeros())
}

/// Checks that the concatenated results of the ranks are `keys` in order.
///
/// Checks the order, the count and the sums of two hashes. A wrong result is less likely to pass than a memory fault,
/// and this takes a tenth of the time of sorting, which every simulation would pay. Only a result that fails is
/// compared with a sequential sort, to report where it differs.
pub(crate) fn check(results: &[Vec<u64>], keys: impl Iterator<Item = u64> + Clone) -> Result<(), String> {
    let found = || results.iter().flatten().copied();
    if found().is_sorted() && Sum::of(found()) == Sum::of(keys.clone()) {
        return Ok(());
    }
    let mut keys: Vec<u64> = keys.collect();
    keys.sort_unstable();
    let count: usize = results.iter().map(Vec::len).sum();
    if count != keys.len() {
        return Err(format!("{count} keys came out of {}", keys.len()));
    }
    let places = results.iter().enumerate().flat_map(|(rank, keys)| keys.iter().map(move |key| (rank, key)));
    for (place, ((rank, found), wanted)) in places.zip(&keys).enumerate() {
        if found != wanted {
            return Err(format!("key {place} in order, at rank {rank}, is {found} instead of {wanted}"));
        }
    }
    Ok(())
}

/// Order-independent digest of a multiset of keys.
#[derive(Default, PartialEq)]
struct Sum {
    keys: u64,
    hashes: [u64; 2],
}

impl Sum {
    fn of(keys: impl Iterator<Item = u64>) -> Self {
        keys.fold(Self::default(), |sum, key| {
            // Products with odd constants, the high half folded into the low one. A plain sum of keys would miss an
            // amount moved from one key to another.
            let hash = |factor: u64| {
                let wide = u128::from(key ^ factor) * u128::from(factor);
                (wide as u64) ^ (wide >> 64) as u64
            };
            let [first, second] = sum.hashes;
            Self {
                keys: sum.keys + 1,
                hashes: [
                    first.wrapping_add(hash(0x9e37_79b9_7f4a_7c15)),
                    second.wrapping_add(hash(0xd6e8_feb8_6659_fd93)),
                ],
            }
        })
    }
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
        let keys = || [3, 1, 2].into_iter();
        assert_eq!(check(&[vec![1, 2], vec![], vec![3]], keys()), Ok(()));
        assert_eq!(check(&[vec![1, 2]], keys()), Err("2 keys came out of 3".into()));
        let refused = |results: &[Vec<u64>]| check(results, keys()).expect_err("wrong");
        assert_eq!(refused(&[vec![2, 1], vec![3]]), "key 0 in order, at rank 0, is 2 instead of 1");
        assert_eq!(refused(&[vec![1, 1], vec![3]]), "key 1 in order, at rank 0, is 1 instead of 2");
        // The same sum of keys.
        assert_eq!(refused(&[vec![0, 3], vec![3]]), "key 0 in order, at rank 0, is 0 instead of 1");
    }
}
