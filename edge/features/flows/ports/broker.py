"""Publishes the values of flows to the broker of the MES."""

from typing import Any

import msgspec

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import PublishMessage
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.links.mqtt import MqttSession, PublishRefused


class MessagePublisher:
    """Publishes messages with QoS 1; a value that is a text is its payload, any other value is sent as JSON."""

    def __init__(self, session: MqttSession) -> None:
        self._session = session

    async def publish(self, action: PublishMessage, _action_id: str) -> dict[str, Any]:
        """Publish a message and return its topic and size.

        Raises NodeError when nothing was published, OutcomeUnknownError when the broker did not confirm.
        """
        if not self._session.connected:
            raise NodeError(Text.of("not connected to the MQTT broker; nothing was published"))
        payload = action.value.encode() if isinstance(action.value, str) else msgspec.json.encode(action.value)
        content_type = "text/plain" if isinstance(action.value, str) else "application/json"
        try:
            await self._session.publish(action.topic, payload, retain=action.retain, content_type=content_type)
        except PublishRefused as error:
            raise NodeError(error.text) from None
        except Unavailable as error:
            raise OutcomeUnknownError(f"the broker did not confirm: {error.message}") from None
        return {"topic": action.topic, "bytes": len(payload)}
