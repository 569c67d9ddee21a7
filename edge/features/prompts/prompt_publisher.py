"""Publishes to the MES each prompt that opens and ends, at least once: what is not published waits in the store."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

import msgspec
import structlog

from edge.features.prompts import keys as prompts_keys
from edge.features.prompts.answering import Prompts
from edge.features.prompts.open_prompt import OpenPrompt, PublicPrompt
from edge.features.prompts.prompt_changes import (
    PromptEvent,
    PromptWatch,
    StoredPrompt,
    cloud_event,
    end_of,
    opening_of,
    save_prompt,
    stored_form,
)
from edge.foundation.errors import Refused, Unavailable
from edge.links.mqtt import MqttSession, PublishRefused, to_message
from edge.northbound.topics import Topics
from edge.station.active_runs import ActiveRuns
from edge.station.decision import LoadedJob
from edge.station.runs import Runs
from edge.store.commit import Commit, operation

logger = structlog.get_logger(__name__)

RETRY_S: Final = 5.0
"""How long broken connections and prompts of other instances are waited for."""
MOST_WAITING: Final = 10_000
"""The most prompts of a scope that wait for the broker; the oldest are not published then."""


class PromptPublisher:
    """Publishes the prompts of a scope."""

    def __init__(
        self,
        runs: Runs,
        active: ActiveRuns,
        prompts: Prompts,
        session: MqttSession,
        source: str,
        topics: Topics,
        retry_s: float = RETRY_S,
    ) -> None:
        self._runs = runs
        self._active = active
        self._prompts = prompts
        self._session = session
        self._source = source
        self._topics = topics
        self._retry_s = retry_s
        self._store = runs.store
        self._key = prompts_keys.prompts(runs.store.keys, topics.scope)
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Publish until cancelled; an unavailable broker or store delays it."""
        watch = PromptWatch(self._prompts, self._note)
        self._active.listeners.append(watch.note)
        try:
            while True:
                self._changed.clear()
                try:
                    await self._publish_all()
                except (Unavailable, PublishRefused, Refused) as error:
                    logger.debug("prompts wait", reason=error.message)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._retry_s):
                        await self._changed.wait()
        finally:
            self._active.listeners.remove(watch.note)

    def _note(self, _job_id: str, _loaded: LoadedJob | None) -> None:
        self._changed.set()

    async def _publish_all(self) -> None:
        """Publish what is stored, and the prompts that another process opened, such as a command."""
        stored = await self._load()
        for prompt in self._prompts.open:
            loaded = self._active.loaded.get(prompt.job_id)
            if prompt.scope == self._topics.scope and prompt.id not in stored and loaded is not None:
                stored[prompt.id] = stored_form(prompt, loaded)
                await self._store.commit(save_prompt(self._store.keys, stored[prompt.id]))
        for entry in sorted(stored.values(), key=lambda entry: entry.prompt.since):
            await self._publish(entry)

    async def _publish(self, stored: StoredPrompt) -> None:
        """Publish the opening and the end, each once it is due, and note it."""
        if not stored.is_announced:
            await self._send(stored, opening_of(stored))
            await self._store.commit(save_prompt(self._store.keys, msgspec.structs.replace(stored, is_announced=True)))
        loaded = await self._runs.load_readable(stored.prompt.job_order_id)
        if not _is_open(stored.prompt, self._prompts.of_job(loaded) if loaded else ()):
            await self._send(stored, end_of(stored, loaded, self._runs.clock()))
            await self._store.commit(self._forget(stored.prompt.id))

    async def _send(self, stored: StoredPrompt, event: PromptEvent) -> None:
        await self._session.send(to_message(cloud_event(self._source, stored, event), self._topics.events))

    async def _load(self) -> dict[str, StoredPrompt]:
        """Read the waiting prompts; forget those that are too many or cannot be read."""
        texts: Mapping[str, str] = await self._store.execute("HGETALL", self._key)
        stored: dict[str, StoredPrompt] = {}
        for prompt, text in texts.items():
            try:
                stored[prompt] = msgspec.json.decode(text, type=StoredPrompt)
            except msgspec.DecodeError as error:
                logger.error("prompt cannot be read", prompt=prompt, reason=str(error))
                await self._store.commit(self._forget(prompt))
        oldest = sorted(stored, key=lambda prompt: stored[prompt].prompt.since)[: max(0, len(stored) - MOST_WAITING)]
        for prompt in oldest:
            logger.warning("prompt not published, too many wait", prompt=prompt, most=MOST_WAITING)
            await self._store.commit(self._forget(prompt))
            del stored[prompt]
        return stored

    def _forget(self, prompt: str) -> Commit:
        return operation("HDEL", self._key, prompt)


def _is_open(prompt: PublicPrompt, prompts: tuple[OpenPrompt, ...]) -> bool:
    return any(item.id == prompt.id for item in prompts)
