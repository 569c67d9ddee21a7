"""Receive signed commands over MQTT, and publish their results."""

from contextlib import suppress

import msgspec
import structlog
from msgspec import Struct

from edge.features.fleet import store as fleet
from edge.features.fleet.command_service import FleetAnswer, FleetService
from edge.features.fleet.signature import read_expiry
from edge.foundation.errors import Defect, Refused
from edge.links.mqtt import Message, MqttSession, PublishRefused, SubscriptionRefused
from edge.store.background import poll_store
from edge.store.client import Store

logger = structlog.get_logger(__name__)

RESULT_EXPIRY_S = 7 * 24 * 3600
JOSE = "application/jose"


class FleetTopics(Struct, frozen=True):
    """Builds the topics of the fleet below a prefix."""

    prefix: str

    @property
    def commands(self) -> str:
        """Return the filter of all commands; each has a retained topic until it expires."""
        return f"{self.prefix}/fleet/commands/+"

    def command(self, id: str) -> str:
        """Return the retained topic of a command."""
        return f"{self.prefix}/fleet/commands/{id}"

    def results(self, id: str) -> str:
        """Return the filter of the results of a command."""
        return f"{self.prefix}/fleet/results/{id}/+"

    def result(self, id: str, component: str) -> str:
        """Return the retained topic of the result of a command at a component."""
        return f"{self.prefix}/fleet/results/{id}/{component}"


class FleetInbox:
    """Subscribes to the commands. A component that was absent gets them when it connects, until they expire."""

    def __init__(self, session: MqttSession, service: FleetService, prefix: str) -> None:
        self._session = session
        self._service = service
        self._topics = FleetTopics(prefix)

    async def open(self) -> None:
        """Subscribe; a refused subscription is retried by the session."""
        with suppress(SubscriptionRefused):
            await self._session.follow(self._topics.commands, self._handle)

    async def publish(self, answer: FleetAnswer) -> None:
        """Publish a result as retained message. Raises Unavailable."""
        topic = self._topics.result(answer.id, answer.result.component)
        payload = msgspec.json.encode(answer.result)
        try:
            await self._session.publish(
                topic, payload, retain=True, content_type="application/json", expiry=RESULT_EXPIRY_S
            )
        except (PublishRefused, Refused) as error:
            logger.warning("fleet result dropped", topic=topic, reason=error.message)

    async def _handle(self, message: Message) -> None:
        try:
            text = message.payload.decode("ascii")
        except UnicodeDecodeError:
            text = ""
        if text and (answer := await self._service.handle(text, message.topic)) is not None:
            await self.publish(answer)


LOOK_EVERY_S = 2.0


class FleetWatch:
    """Looks for commands in the store; the results are there, too."""

    def __init__(self, store: Store, service: FleetService) -> None:
        self._store = store
        self._service = service
        self._seen: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Handle commands until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "fleet commands", self.look, LOOK_EVERY_S)

    async def look(self) -> None:
        """Handle the commands that have arrived since the last look."""
        found = await fleet.load_commands(self._store)
        for id in sorted(found.keys() - self._seen):
            try:
                await self._service.handle(found[id], "store")
            except Defect as error:
                # A foreign value at a key of one command must not stop the gateway.
                logger.error("fleet command not handled", id=id[:80], reason=error.message)
        self._seen = frozenset(found)


async def remove_expired(store: Store, now_s: int) -> None:
    """Remove the commands that have expired, and what is not a command."""
    found = await fleet.load_commands(store)
    if gone := [id for id, text in found.items() if read_expiry(text) < now_s]:
        await store.commit(fleet.remove_commands(store.keys, gone))
