"""Which job has which processor when: the same from the switches as from what is simulated."""

from itertools import islice, pairwise

import pytest

from crosswind.run.quanta import Quanta

QUANTA = [
    Quanta.gang(2, 2, 0.1),
    Quanta.gang(3, 2, 0.01),
    Quanta.local(2, 4, 0.1, seed=1),
    Quanta.local(3, 3, 0.02, seed=7),
    Quanta(2, 10, (0, 10, 5, 19)),
    Quanta(4, 1, (0, 3)),
]


@pytest.mark.parametrize("quanta", QUANTA)
def test_each_moment_of_a_processor_belongs_to_exactly_one_job(quanta):
    for processor in range(len(quanta.shifts_ns)):
        for job in range(quanta.jobs):
            away = quanta.away(job, processor)
            assert sum(end - begin for begin, end in away) == quanta.round_ns - quanta.quantum_ns
            assert all(0 <= begin < end <= quanta.round_ns for begin, end in away)
        edges = {edge for job in range(quanta.jobs) for pair in quanta.away(job, processor) for edge in pair}
        for at_ns in {max(edge - 1, 0) for edge in edges} | edges - {quanta.round_ns} | {0}:
            here = [
                job
                for job in range(quanta.jobs)
                if not any(begin <= at_ns < end for begin, end in quanta.away(job, processor))
            ]
            assert here == [quanta.job_at(processor, at_ns)]


@pytest.mark.parametrize("quanta", QUANTA)
def test_the_switches_are_the_times_at_which_the_job_of_a_processor_changes(quanta):
    found = list(islice(quanta.switches(), 40))
    times = [at_ns for at_ns, _ in found]
    assert times == sorted(set(times))
    assert times[0] > 0
    assert times[0] <= quanta.quantum_ns
    for processor in range(len(quanta.shifts_ns)):
        own = [at_ns for at_ns, processors in found if processor in processors]
        assert {later - earlier for earlier, later in pairwise(own)} == {quanta.quantum_ns}
        for at_ns in own:
            before, after = quanta.job_at(processor, at_ns - 1), quanta.job_at(processor, at_ns)
            assert after == (before + 1) % quanta.jobs


def test_a_gang_switches_all_processors_at_once_and_local_turns_do_not():
    assert all(processors == [0, 1, 2] for _, processors in islice(Quanta.gang(2, 3, 0.1).switches(), 10))
    local = Quanta.local(2, 3, 0.1, seed=1)
    assert all(len(processors) == 1 for _, processors in islice(local.switches(), 10))
    assert local == Quanta.local(2, 3, 0.1, seed=1)
    assert local != Quanta.local(2, 3, 0.1, seed=2)


@pytest.mark.parametrize("quanta", QUANTA[:4])
def test_what_is_simulated_is_what_the_other_jobs_have(quanta):
    for job in range(quanta.jobs):
        [source] = quanta.disturbance("gang", job, len(quanta.shifts_ns)).to_dict()["source"]
        assert source["length_s"] == pytest.approx(quanta.round_ns * 1e-9)
        for processor, cpu in enumerate(source["cpu"]):
            away = [(round(start_s * 1e9), round(for_s * 1e9)) for start_s, for_s, _ in cpu["intervals"]]
            assert away == [(begin, end - begin) for begin, end in quanta.away(job, processor)]
