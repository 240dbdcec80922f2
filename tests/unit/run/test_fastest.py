"""Which orders are fastest: what pairs with the same seeds settle, leave open, and never compare."""

from crosswind.run.fastest import fastest, in_words
from crosswind.run.results import Run


def runs(**makespans):
    """Runs by order, from makespans by seed."""
    return {
        order: [Run({"seed": seed, "makespan_s": makespan}) for seed, makespan in by_seed.items()]
        for order, by_seed in makespans.items()
    }


def test_orders_without_a_seed_in_common_are_no_tie():
    found = fastest(runs(a={1: 1.0, 2: 1.01}, b={3: 9.0, 4: 9.01}), exact=True)
    assert (found.orders, found.compared) == (["a", "b"], False)
    assert "tied" not in in_words([found], ["a", "b"])
    assert "not compared, since they have no seed in common" in in_words([found], ["a", "b"])


def test_an_order_that_any_other_is_faster_than_is_not_fastest():
    # `slow` shares seeds with `b` alone, which is not the one with the least mean.
    found = fastest(runs(a={1: 1.0, 2: 1.1}, b={1: 1.1, 2: 1.05, 5: 2.0, 6: 2.1}, slow={5: 4.0, 6: 4.1}), exact=True)
    assert (found.orders, found.compared) == (["a", "b"], True)


def test_a_tie_is_a_pair_that_was_compared_and_not_settled():
    found = fastest(
        runs(a={1: 1.0, 2: 2.0, 3: 3.0}, b={1: 1.3, 2: 1.8, 3: 3.1}, c={1: 5.0, 2: 6.0, 3: 7.0}), exact=True
    )
    assert (found.orders, found.compared) == (["a", "b"], True)


def test_one_seed_of_several_settles_nothing():
    found = fastest(runs(a={1: 1.0, 2: 2.0}, b={1: 1.5, 3: 1.0}), exact=True)
    assert found.orders == ["a", "b"]
    assert fastest(runs(a={1: 1.0}, b={1: 1.5}), exact=True).orders == ["a"]
    assert fastest(runs(a={1: 1.0}, b={1: 1.5}), exact=False).orders == ["a", "b"]


def test_orders_each_slower_than_another_with_other_seeds_are_not_ranked():
    found = fastest(
        runs(
            a={1: 1.0, 2: 1.0, 5: 2.0, 6: 2.0},
            b={1: 2.0, 2: 2.0, 3: 1.0, 4: 1.0},
            c={3: 2.0, 4: 2.0, 5: 1.0, 6: 1.0},
        ),
        exact=True,
    )
    assert (found.orders, found.compared) == (["a", "b", "c"], False)
