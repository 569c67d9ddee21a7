"""The locks of a run: those that it holds, and those for which it waits before it enters a step."""

from __future__ import annotations

import msgspec


class RunLocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The locks of a run. Instants are milliseconds since the Unix epoch.

    While the run waits, `entering` names the steps that a transition is about to enter and `wanted` all locks that they
    need beyond those of the active steps; `held` may hold some of them already. Without the rest at `deadline` the run
    fails. `forced` holds the places of transitions that a person has forced, and that wait for their locks.
    """

    held: tuple[str, ...] = ()
    entering: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    since: int = 0
    deadline: int | None = None
    forced: tuple[int, ...] = ()

    @property
    def claimed(self) -> frozenset[str]:
        """Return the locks that the run holds or waits for."""
        return frozenset(self.held).union(self.wanted)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the locks for which the run waits, in the order in which they are acquired."""
        return tuple(each for each in self.wanted if each not in self.held)


NO_LOCKS = RunLocks()
"""The locks of a run that neither holds a lock nor waits for one."""
