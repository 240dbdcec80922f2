"""Rounds of pairs: every pair once, no host twice at a time, and no more rounds than promised."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from crosswind.measure.cluster.rounds import rounds

HOSTS = [f"host{at}" for at in range(24)]


def check(pairs, found):
    flat = [pair for one in found for pair in one]
    assert Counter(map(frozenset, flat)) == Counter(set(map(frozenset, pairs)))
    for one in found:
        assert len({host for pair in one for host in pair}) == 2 * len(one)
        assert one


def most_neighbours(pairs):
    return max(Counter(host for pair in set(map(frozenset, pairs)) for host in pair).values(), default=0)


@given(st.integers(2, 24))
def test_all_pairs_take_as_many_rounds_as_a_tournament(count):
    pairs = list(combinations(HOSTS[:count], 2))
    found = rounds(pairs)
    check(pairs, found)
    assert len(found) == count - 1 + count % 2


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=23))
def test_a_tree_takes_as_many_rounds_as_its_busiest_node_has_neighbours(draws):
    pairs = [(HOSTS[draw % (at + 1)], HOSTS[at + 1]) for at, draw in enumerate(draws)]
    # From the root down, as a platform's nodes stand breadth first.
    order = [HOSTS[0]]
    for host in order:
        order += [child for parent, child in pairs if parent == host]
    down = sorted(pairs, key=lambda pair: order.index(pair[1]))
    found = rounds(down)
    check(pairs, found)
    assert len(found) == most_neighbours(pairs)


@given(
    st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(HOSTS)).filter(lambda p: p[0] != p[1]), max_size=80),
    st.none() | st.integers(1, 5),
)
def test_any_pairs_are_in_few_rounds_once_each(pairs, at_once):
    found = rounds(pairs, at_once)
    check(pairs, found)
    if at_once is None:
        hosts = {host for pair in pairs for host in pair}
        assert len(found) <= min(max(2 * most_neighbours(pairs) - 1, 0), len(hosts))
    else:
        assert all(len(one) <= at_once for one in found)
