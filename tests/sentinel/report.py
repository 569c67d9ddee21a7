"""Prints the outcomes of a campaign as a table, a line for each kind of fault."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.sentinel.campaign import Round

_COLUMNS = ("times", "accepted", "lost", "late", "unnamed", "twice", "stuck", "untold", "order", "ends+", "decided")


_TIMES = ("sentinel, worst", "next step after it, worst", "next once after it, worst", "pause, worst")
_LISTS = ("lost", "lost_late", "unnamed", "twice", "stuck", "untold", "disordered", "repeated_ends")
_MOST_SHOWN = 4


def line_of(outcome: Round) -> str:
    """Return one line about one fault, and one for each kind of what must not be, with examples."""
    measured = f", sentinel {outcome.sentinel_s:.2f} s" if outcome.sentinel_s is not None else ""
    if outcome.sentinel_s is not None and outcome.step_s is not None:
        measured += f", next step {outcome.step_s - outcome.sentinel_s:+.2f} s"
    if outcome.sentinel_s is not None and outcome.once_s is not None:
        measured += f", next once {outcome.once_s - outcome.sentinel_s:+.2f} s"
    if outcome.fault.pauses_s < math.inf:
        measured += f", no command for {outcome.paused_s:.2f} s at most"
    lost = f", {len(outcome.lost)} lost" if outcome.lost else ""
    lines = [f"{outcome.fault.name}: {outcome.accepted} accepted{lost}{measured}"]
    for kind, jobs in outcome.faults().items():
        examples = ", ".join(jobs[:_MOST_SHOWN]) + (", …" if len(jobs) > _MOST_SHOWN else "")
        lines.append(f"  FAULT {len(jobs)} {kind}: {examples}")
    return "\n".join(lines)


def table(rounds: Sequence[Round]) -> Iterator[str]:
    """Return the lines of the table."""
    by_name: dict[str, list[Round]] = defaultdict(list)
    for outcome in rounds:
        by_name[outcome.fault.name].append(outcome)
    yield f"| {' | '.join(('fault', *_COLUMNS, *_TIMES))} |"
    yield "|---" * (1 + len(_COLUMNS) + len(_TIMES)) + "|"
    for name, outcomes in by_name.items():
        counts = (
            len(outcomes),
            sum(item.accepted for item in outcomes),
            *(sum(len(getattr(item, column)) for item in outcomes) for column in _LISTS),
            sum(item.resolved for item in outcomes),
        )
        sentinel = [item.sentinel_s for item in outcomes if item.sentinel_s is not None]
        yield (
            f"| {name} | {' | '.join(map(str, counts))} | {f'{max(sentinel):.2f} s' if sentinel else '–'} "
            f"| {_worst(outcomes, 'step_s')} | {_worst(outcomes, 'once_s')} "
            f"| {max(item.paused_s for item in outcomes):.2f} s |"
        )


def _worst(outcomes: Sequence[Round], name: str) -> str:
    """Return the longest time after Sentinel's own."""
    times = [
        getattr(outcome, name) - outcome.sentinel_s
        for outcome in outcomes
        if outcome.sentinel_s is not None and getattr(outcome, name) is not None
    ]
    return f"{max(times):+.2f} s" if times else "–"
