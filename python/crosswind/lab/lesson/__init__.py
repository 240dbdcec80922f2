"""The lesson: why the child with the fastest link is served first, shown with the simulator's own timelines.

| question | module |
|---|---|
| which runs does it show, at which rates of each link | `scenes` |
| why is a guess wrong | `explanations` |
| the page | `page`, `templates` |
| figures for slides | `figures` |

The page decides nothing: every timeline and every outcome in it was simulated before it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crosswind import Platform
from crosswind.files.atomic import write_text
from crosswind.files.output import writable, writable_directory


def lesson(
    platform: Platform | str | Path | None = None,
    out: str | Path = "lesson.html",
    *,
    task_size_mb: float = 2.0,
    task_work: float = 5.0,
    figures: str | Path | None = None,
    force: bool = False,
    progress: Callable[[float, str], None] | None = None,
) -> Path:
    """Write one HTML file that teaches bandwidth-centric scheduling, and needs no network.

    Parameters
    ----------
    platform : Platform or path, optional
        A tree: a root with 2 to 12 nodes in at most 3 levels below it. The root, or any other node, may compute
        nothing. Default: the fork of interference-aware-scheduling, table 4.
    out : path
        The file to write; it is replaced only once the new one is complete.
    task_size_mb : float
        Input of a task, MB, greater than 0.
    task_work : float
        Work of a task, work units, greater than 0.
    figures : path, optional
        A directory for figures for slides, as SVG and PNG: the tree, each order, and both orders.
    force : bool
        Replace a file that is not a page of Crosswind; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    DescriptionError
        When the platform has too few or too many nodes or levels, an argument is out of range, or a file cannot be
        written.

    Notes
    -----
    interference-aware-scheduling, sections 3 and 4: 200 tasks, one send at a time, two tasks ahead at each child.
    The same arguments give the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     lesson(out=Path(directory) / "lesson.html").name
    'lesson.html'
    """
    from crosswind.lab.lesson.page import page_of
    from crosswind.lab.lesson.scenes import scenes_of

    out = Path(out)
    inputs = [platform] if isinstance(platform, (str, Path)) else []
    writable(out, "report", inputs=inputs, force=force)
    writable_directory(figures, "figures")
    scenes = scenes_of(platform, task_size_mb, task_work, progress)
    write_text(page_of(scenes), out)
    if figures is not None:
        from crosswind.lab.lesson.figures import write_figures

        write_figures(scenes, Path(figures))
    return out
