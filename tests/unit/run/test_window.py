"""How many calls nodes have at a time, and how many travel together."""

from crosswind.run.window import Window


def test_calls_of_a_second_go_one_by_one_two_for_each_node():
    window = Window(3)
    for _ in range(20):
        window.took(window.batch, 1.0 * window.batch)
    assert (window.batch, window.size, window.calls(1000)) == (1, 6, 1)


def test_a_batch_grows_eightfold_at_most_and_is_meant_to_take_20_ms():
    window, sizes = Window(2), []
    for _ in range(6):
        window.took(window.batch, 2e-6 * window.batch)
        sizes.append(window.batch)
    assert sizes == [8, 64, 512, 4096, 10000, 10000]
    assert window.size == 10


def test_a_slow_call_makes_the_next_batches_small_again():
    window = Window(2)
    for _ in range(6):
        window.took(window.batch, 1e-5 * window.batch)
    assert window.batch > 1000
    window.took(10, 3.0)
    assert window.batch == 1


def test_few_calls_that_are_left_are_shared_among_the_nodes():
    window = Window(4)
    for _ in range(4):
        window.took(window.batch, 0.0005 * window.batch)
    assert window.batch == 40
    assert [window.calls(waiting) for waiting in (10_000, 320, 16, 1)] == [40, 20, 2, 1]


def test_no_more_go_together_than_were_asked_for():
    window = Window(2, most=5, begin=5)
    assert window.calls(100) == 5
    for _ in range(3):
        window.took(5, 1e-5)
    assert (window.batch, window.calls(100), window.calls(3)) == (5, 5, 3)
    alone = Window(2, most=1)
    alone.answered(8, 8, 1.0)
    alone.answered(8, 8, 1.001)
    assert (alone.batch, alone.size) == (1, 800)
