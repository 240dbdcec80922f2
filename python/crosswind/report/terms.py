"""The words of the report, each in two or three sentences. A section links to them by id."""

from __future__ import annotations

MEASURED = (
    ("ir", "interference rate (IR)", "The part of the compute rate that is lost per MB/s (or GB/s) of traffic: minus the slope of the fitted line. 0.15 s/GB means that 1 GB/s takes 15 % of the computation."),
    ("interval", "95 % interval", "Where the figure would lie in 95 of 100 such measurements. From a bootstrap over whole cycles, because neighbouring samples resemble each other and a naive interval would be too narrow."),
    ("upper-bound", "upper bound", "Where the interval holds 0, the rate itself says nothing; it is at most this."),
    ("time-base", "time base: available and wall", "`wall` divides work and MB by time, as a user feels it; other processes on the CPU move it. `available` divides both by the CPU seconds that were left to the measurement's own threads, so other processes drop out; it is used where threads are pinned and no quota throttles."),
    ("intercept", "const (intercept)", "Where the line meets 0 MB/s, in parts of the idle rate. Far from 1, the line does not fit, or traffic costs something before the first byte."),
    ("bare", "idle against bare", "The compute rate with connections open and nothing moving, over the rate before any socket existed. A receiver that spins takes half a core while its interference rate is 0; only this shows it."),
    ("std-dev", "StDev", "Standard deviation of what the line leaves over, in parts of the full rate."),
    ("max-error", "MaxErr", "The largest distance of a point from the line, in parts of the full rate."),
    ("r-squared", "R²", "The part of the variation that the fit explains. It is low where there is little to explain: on an IR of about 0 it says nothing."),
    ("quadratic", "quadratic", "A parabola through the same points. Where the t of its square is beyond about 3 to 5, the cost per MB changes with the rate, mostly because data arrives in larger batches."),
    ("lack-of-fit", "lack of fit", "Blocks at 1/4 and 3/4 of the top rate are measured only to check the line, which does not see them."),
    ("theil-sen", "Theil-Sen", "The median of the slopes between all pairs of points of a cycle. A few disturbed points cannot move it; far from least squares, distrust both."),
    ("chord", "chord", "The loss at the top over the top rate: the slope from idle straight to the top."),
    ("loss", "loss", "1 minus the compute rate at a transfer rate, in parts of the idle rate."),
    ("displacement", "displacement and slow-down", "Displacement: the traffic's threads had the CPU instead. Slow-down: the computation did less per CPU second (interrupt work charged to it, caches, memory, clock). Together they are the loss."),
    ("cost", "cost per call, GB and wake-up", "The CPU time of the traffic's threads explained by what they did. Where calls and bytes rise together their sum is well known and the parts are not, which their intervals show."),
    ("range", "range", "The transfer rates that the figures stand on. Slopes over different ranges do not compare; losses at one rate do."),
    ("foreign", "foreign load", "CPU time on the computing CPU that went to neither the computation nor the traffic. Intervals with much of it are dropped."),
)  # fmt: skip
TOGETHER = (
    ("additive", "bias", "Measured minus predicted, mean over the blocks with several peers; below 0, together costs more than the sum. Beside it the same against one peer alone at the same total rate, which a curved cost cannot mislead."),
    ("plane", "plane", "compute rate = const − IR' received − IR' sent, by least squares over all blocks."),
    ("three-point", "three-point law", "1 − IR received − IR sent through three measured points: alone, receiving at most, both at most. It needs few measurements, and is exact only at those points."),
    ("hull", "hull", "The smallest convex region that holds the measured rates. A prediction inside it interpolates; one outside is a guess."),
)  # fmt: skip
SWEPT = (
    ("matched-rate", "matched rate", "The highest rate that every point of the sweep reached. The loss there compares like with like."),
)  # fmt: skip
PLANNED = (
    ("throughput", "throughput", "Tasks per second that all nodes compute together, in the steady state."),
    ("bound", "bound and gap", "No schedule can be faster than the bound; it is proved by the dual of the linear program. The gap is (bound − throughput) / bound."),
    ("root-only", "root alone", "The throughput if the root computed everything itself and sent nothing: the yardstick of the papers."),
    ("rank", "rank", "The place of a node among its siblings in the order of service."),
    ("limited-by", "limited by", "What keeps a node from doing more: its own compute rate, its receive or send limit, its single port, what its parent gives, or that its own computation cannot fall below 0."),
    ("never-send", "never sent to", "A task sent there costs its parent more computation than the task is worth."),
    ("gain", "gain", "How many more tasks per second the whole tree would compute with one more unit of this limit. 0: more of it would bring nothing."),
)  # fmt: skip
