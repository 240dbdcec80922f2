"""Which job has which processor when: the same from the switches as from what is simulated."""

from itertools import islice, pairwise

import pytest

from crosswind.run.turns import Turns

TURNS = [
    Turns.gang(2, 2, 0.1),
    Turns.gang(3, 2, 0.01),
    Turns.local(2, 4, 0.1, seed=1),
    Turns.local(3, 3, 0.02, seed=7),
    Turns(2, 10, (0, 10, 5, 19)),
    Turns(4, 1, (0, 3)),
]


@pytest.mark.parametrize("turns", TURNS)
def test_each_moment_of_a_processor_belongs_to_exactly_one_job(turns):
    for processor in range(len(turns.shifts_ns)):
        for job in range(turns.jobs):
            away = turns.away(job, processor)
            assert sum(end - begin for begin, end in away) == turns.round_ns - turns.quantum_ns
            assert all(0 <= begin < end <= turns.round_ns for begin, end in away)
        edges = {edge for job in range(turns.jobs) for pair in turns.away(job, processor) for edge in pair}
        for at_ns in {max(edge - 1, 0) for edge in edges} | edges - {turns.round_ns} | {0}:
            here = [
                job
                for job in range(turns.jobs)
                if not any(begin <= at_ns < end for begin, end in turns.away(job, processor))
            ]
            assert here == [turns.job_at(processor, at_ns)]


@pytest.mark.parametrize("turns", TURNS)
def test_the_switches_are_the_times_at_which_the_job_of_a_processor_changes(turns):
    found = list(islice(turns.switches(), 40))
    times = [at_ns for at_ns, _ in found]
    assert times == sorted(set(times))
    assert times[0] > 0
    assert times[0] <= turns.quantum_ns
    for processor in range(len(turns.shifts_ns)):
        own = [at_ns for at_ns, processors in found if processor in processors]
        assert {later - earlier for earlier, later in pairwise(own)} == {turns.quantum_ns}
        for at_ns in own:
            before, after = turns.job_at(processor, at_ns - 1), turns.job_at(processor, at_ns)
            assert after == (before + 1) % turns.jobs


def test_a_gang_switches_all_processors_at_once_and_local_turns_do_not():
    assert all(processors == [0, 1, 2] for _, processors in islice(Turns.gang(2, 3, 0.1).switches(), 10))
    local = Turns.local(2, 3, 0.1, seed=1)
    assert all(len(processors) == 1 for _, processors in islice(local.switches(), 10))
    assert local == Turns.local(2, 3, 0.1, seed=1)
    assert local != Turns.local(2, 3, 0.1, seed=2)


@pytest.mark.parametrize("turns", TURNS[:4])
def test_what_is_simulated_is_what_the_other_jobs_have(turns):
    for job in range(turns.jobs):
        [source] = turns.disturbance("gang", job, len(turns.shifts_ns)).to_dict()["source"]
        assert source["length_s"] == pytest.approx(turns.round_ns * 1e-9)
        for processor, cpu in enumerate(source["cpu"]):
            away = [(round(start_s * 1e9), round(for_s * 1e9)) for start_s, for_s, _ in cpu["intervals"]]
            assert away == [(begin, end - begin) for begin, end in turns.away(job, processor)]
