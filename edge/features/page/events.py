"""Sends notices of changes to open pages: what changed, not how; a page then reads what it shows."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from edge.foundation.errors import Refused
from edge.foundation.rate_limit import Allowance
from edge.foundation.task_group import TaskGroup
from edge.model.plant import Maintenance
from edge.station.runs import Progress
from edge.store import changes
from edge.store import kept_alarms as alarms
from edge.store.background import restart_on_outage
from edge.store.client import Store
from edge.store.reads import BEGINNING

MOST_SUBSCRIBERS: Final = 64
MOST_OF_USER: Final = 32
"""Half of all: the pages of one user never keep those of others away."""
EVERYTHING: Final = "*"
_MOST_SUBJECTS: Final = 32
"""Subjects that wait for one page; beyond them it reads everything again."""
_GATHER_S: Final = 0.05
"""How long a notice waits for others that belong to the same change."""
_AT_ONCE: Final = 4
_PER_S: Final = 20.0
"""Pages get so many notices at once, and 20 a second beyond: each makes a page read what it shows, which slows jobs."""


def notice_pace() -> Allowance:
    """Return what spreads the notices to all pages."""
    return Allowance(_PER_S, _AT_ONCE)


class PageSubscription:
    """The changes that wait for one page."""

    def __init__(self, pace: Allowance) -> None:
        self._pace = pace
        self._subjects: dict[str, None] = {}
        self._arrived = asyncio.Event()

    def put(self, subjects: Sequence[str]) -> None:
        """Add subjects; too many of them become one."""
        self._subjects.update(dict.fromkeys(subjects))
        if len(self._subjects) > _MOST_SUBJECTS:
            self._subjects = {EVERYTHING: None}
        self._arrived.set()

    async def take(self, within_s: float) -> tuple[str, ...]:
        """Wait for changes and take them; return nothing when there is none within some seconds."""
        try:
            async with asyncio.timeout(within_s):
                await self._arrived.wait()
        except TimeoutError:
            return ()
        await asyncio.sleep(max(_GATHER_S, self._pace.use()))
        self._arrived.clear()
        found, self._subjects = tuple(self._subjects), {}
        return found


class EventHub:
    """Distributes changes to at most `most` pages, `most_of_user` of one user; without pages it reads nothing."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        most: int = MOST_SUBSCRIBERS,
        most_of_user: int = MOST_OF_USER,
    ) -> None:
        self._store = store
        self._scopes = tuple(scopes)
        self._most = most
        self._most_of_user = most_of_user
        self._pages: Counter[str] = Counter()
        self._pace = notice_pace()
        self._subscriptions: set[PageSubscription] = set()
        self._changed = asyncio.Event()
        self.changes = 0
        """The number of changes that were published."""

    @property
    def subscribers(self) -> int:
        """The number of open pages."""
        return len(self._subscriptions)

    def is_full(self, user: str) -> bool:
        """Return whether no further page of a user may follow changes."""
        return len(self._subscriptions) >= self._most or self._pages[user] >= self._most_of_user

    @contextmanager
    def subscribe(self, user: str) -> Iterator[PageSubscription]:
        """Collect changes for a page of a user for the length of the block. Raises Refused when there are too many."""
        if self.is_full(user):
            raise Refused("too_many_pages", "too many pages follow changes already.", "Close one of them.")
        self._pages[user] += 1
        subscription = PageSubscription(self._pace)
        self._subscriptions.add(subscription)
        self._changed.set()
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            self._pages[user] -= 1
            self._pages += Counter()  # forget users without a page
            self._changed.set()

    def note_call(self) -> None:
        """Count a call that may have changed anything: no earlier result is shared from now on."""
        self.changes += 1

    def publish(self, *subjects: str) -> None:
        """Notify every open page of a change."""
        self.changes += 1
        for subscription in self._subscriptions:
            subscription.put(subjects)

    def note_progress(self, progress: Progress) -> None:
        """Publish the progress of a run."""
        self.publish(f"job:{progress.loaded.job.job_id}")

    def note_mode(self, _: Maintenance | None) -> None:
        """Publish a switch of the maintenance mode."""
        self.publish("station")

    def note_health(self) -> None:
        """Publish other problems of the gateway, also that its store accepts no work."""
        self.publish("station")

    def note_equipment(self) -> None:
        """Publish a new report of the equipment."""
        self.publish("station")

    async def run(self) -> None:
        """Follow the changes in the store while there are pages, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._subscriptions:
                await self._follow_while_open()

    async def _follow_while_open(self) -> None:
        async with TaskGroup() as tasks:
            followers = [
                tasks.create_task(restart_on_outage("web jobs", self._follow_jobs), name="web jobs"),
                tasks.create_task(restart_on_outage("web alarms", self._follow_alarms), name="web alarms"),
            ]
            while self._subscriptions:
                await self._changed.wait()
                self._changed.clear()
            for follower in followers:
                follower.cancel()

    async def _follow_jobs(self) -> None:
        positions = await changes.latest(self._store, self._scopes)
        # What changed before was not noticed: pages read again, and no earlier result is shared.
        self.publish(EVERYTHING)
        async for change in changes.follow(self._store, positions):
            self.publish("jobs", f"job:{change.job_order_id}")

    async def _follow_alarms(self) -> None:
        newest = await alarms.newest(self._store, 1)
        self.publish(EVERYTHING)
        async for _ in alarms.follow(self._store, newest[-1].position if newest else BEGINNING):
            self.publish("alarms")
