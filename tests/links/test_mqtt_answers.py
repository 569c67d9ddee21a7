"""An answer is published to the response topic of its request; a forbidden topic delays no other answer."""

import pytest
from structlog.testing import capture_logs

from edge.config import MqttSettings
from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, open_session
from edge.links.mqtt_confirmations import PublishRefused
from edge.model.cloudevent import CloudEvent
from tests.conftest import WaitUntil
from tests.local_broker import open_broker

ANSWER = CloudEvent(id="1", source="/edge", type="t", data={"n": 1})


async def test_answer_has_the_correlation_data_of_its_request(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    messages: list[Message] = []

    async def take(message: Message) -> None:
        messages.append(message)

    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/#", take)
        await session.answer(Message("asked", response_topic=f"{unique}/a", correlation_data=b"it"), ANSWER)
        await wait_until(lambda: messages)
    assert (messages[0].payload, messages[0].correlation_data) == (b'{"n":1}', b"it")


@pytest.mark.parametrize("topic", [None, "$SYS/not-ours", "a/+/b", "", "\x01"])
async def test_a_request_without_a_valid_response_topic_is_acknowledged(
    mqtt: MqttSettings, unique: str, topic: str | None
) -> None:
    with capture_logs() as logs:
        async with open_session(mqtt, unique) as session:
            await session.answer(Message("asked", response_topic=topic), ANSWER)
    assert ("answer dropped" in {entry["event"] for entry in logs}) is (topic is not None)


async def test_forbidden_topic_differs_from_an_unavailable_broker(unique: str) -> None:
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        with pytest.raises(PublishRefused, match="refused a publish") as refused:
            await session.publish("$SYS/not-ours", b"x")
        assert "access rules" in refused.value.advice
        await broker.stop()
        with pytest.raises(Unavailable) as gone:
            await session.answer(Message("asked", response_topic=f"{unique}/a"), ANSWER)
    assert not isinstance(gone.value, PublishRefused)
