//! The edges that a rank still holds, between component names.

/// Edges as pairs of indices into a list of distinct names.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub names: Vec<u64>,
    pub edges: Vec<(u32, u32)>,
}

impl Table {
    pub fn new(edges: &[(u64, u64)]) -> Self {
        let mut names: Vec<u64> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &u64| names.partition_point(|n| n < name) as u32;
        let edges = edges.iter().map(|(a, b)| (place(a), place(b))).collect();
        Self { names, edges }
    }

    /// Drops edges within a component and names without an edge, and merges names that have become equal.
    pub fn contract(&mut self) {
        let mut kept: Vec<u64> = self.names.clone();
        kept.sort_unstable();
        kept.dedup();
        let places: Vec<u32> = self.names.iter().map(|name| kept.partition_point(|n| n < name) as u32).collect();
        let mut used = vec![false; kept.len()];
        self.edges.retain_mut(|(a, b)| {
            (*a, *b) = (places[*a as usize], places[*b as usize]);
            if a != b {
                used[*a as usize] = true;
                used[*b as usize] = true;
            }
            a != b
        });
        let mut next = 0;
        let moved: Vec<u32> = used
            .iter()
            .map(|used| {
                next += u32::from(*used);
                next.wrapping_sub(1)
            })
            .collect();
        let mut used = used.into_iter();
        kept.retain(|_| used.next().unwrap_or(false));
        for (a, b) in &mut self.edges {
            (*a, *b) = (moved[*a as usize], moved[*b as usize]);
        }
        self.names = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracting_drops_inner_edges_and_names_that_no_edge_has() {
        let mut table = Table::new(&[(5, 9), (7, 9), (5, 7), (3, 5)]);
        assert_eq!((&*table.names, table.edges.len()), (&[3, 5, 7, 9][..], 4));
        // 7 hooks onto 9, 3 onto 5.
        table.names = vec![5, 5, 9, 9];
        table.contract();
        assert_eq!(table.names, [5, 9]);
        assert_eq!(table.edges, [(0, 1), (0, 1)]);
        table.names = vec![9, 9];
        table.contract();
        assert!(table.names.is_empty() && table.edges.is_empty());
    }
}
