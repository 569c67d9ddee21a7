"""A device over MQTT is tested from the gateway's side, and its protocol faults are reported."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from edge.config import MqttSettings
from edge.features.simulator.controller import open_controller
from edge.features.simulator.device_check import CheckFinding, DeviceCheck, Grade
from edge.links.mqtt import Message, MqttSession, open_session

pytestmark = pytest.mark.slow

TYPE_ID = "com.example.station.tighten.v1"
OK, NOTE, FAILED = Grade.OK, Grade.NOTE, Grade.FAILED


async def check(mqtt: MqttSettings, prefix: str, answer_s: float) -> dict[str, CheckFinding]:
    """Return what the test of the wrench finds."""
    async with open_session(mqtt, f"{prefix}-check", session_expiry=0) as session:
        check_findings = await DeviceCheck(session, f"{prefix}/wrench", TYPE_ID, "station-1", answer_s).run()
    return {check_finding.check: check_finding for check_finding in check_findings}


@pytest.mark.parametrize("forgetful", [False, True])
async def test_simulated_controller_passes_with_and_without_memory(
    mqtt: MqttSettings, unique: str, *, forgetful: bool
) -> None:
    async with (
        open_session(mqtt, f"{unique}-device") as session,
        open_controller(session, "wrench", topic_prefix=unique, delay=0.0, forgetful=forgetful),
    ):
        check_findings = await check(mqtt, unique, 30.0)
    assert [check_finding for check_finding in check_findings.values() if check_finding.grade is not OK] == []
    assert len(check_findings) == 10
    assert ("unknown" in check_findings["start that was offered before"].detail) is forgetful


async def test_device_without_answers_fails_with_reasons(mqtt: MqttSettings, unique: str) -> None:
    async def swallow(_: Message) -> None:
        """Take a command and say nothing."""

    async with open_session(mqtt, f"{unique}-device") as session:
        await session.subscribe(f"{unique}/wrench/commands", swallow)
        check_findings = await check(mqtt, unique, 0.1)
    grades = {name: check_finding.grade for name, check_finding in check_findings.items()}
    assert grades == {
        "presence": NOTE,
        "subscription": OK,
        "start": FAILED,
        "repeated start": FAILED,
        "repeated start at work": FAILED,
        "stop": FAILED,
        "reset": FAILED,
        "start that was offered before": FAILED,
        "start of a known id with other parameters": NOTE,
        "work": OK,
    }


async def test_repeated_work_and_missing_attributes_are_detected(mqtt: MqttSettings, unique: str) -> None:
    works = iter(range(100))

    async def answer(message: Message) -> None:
        assert message.response_topic
        properties = {"causationid": message.user_properties["id"]}
        await session.publish(message.response_topic, str(next(works)).encode(), user_properties=properties)

    session: MqttSession
    async with open_session(mqtt, f"{unique}-device") as session:
        await session.subscribe(f"{unique}/wrench/commands", answer)
        check_findings = await check(mqtt, unique, 30.0)
    assert check_findings["repeated start"].grade is FAILED
    assert (check_findings["attributes"].grade, check_findings["content type"].grade) == (NOTE, NOTE)


async def check_of_device(
    mqtt: MqttSettings, unique: str, answer: Callable[[str], Message], *, work_s: float = 0.0
) -> dict[str, CheckFinding]:
    """Return what the test finds of a device that works at each start, and answers by the phase of the command."""

    async def take(message: Message) -> None:
        phase = message.user_properties["phase"]
        if phase == "start":
            await asyncio.sleep(work_s)
        assert message.response_topic
        given = answer(phase)
        properties = {"causationid": message.user_properties["id"], **given.user_properties}
        await session.send(replace(given, topic=message.response_topic, user_properties=properties))

    session: MqttSession
    async with open_session(mqtt, f"{unique}-device") as session:
        await session.subscribe(f"{unique}/wrench/commands", take)
        return await check(mqtt, unique, 5.0)


async def test_repeated_work_with_an_equal_result_is_detected(mqtt: MqttSettings, unique: str) -> None:
    check_findings = await check_of_device(
        mqtt, unique, lambda phase: Message("", b'{"torque": 85}' if phase == "start" else b""), work_s=0.3
    )
    assert check_findings["repeated start"].grade is NOTE
    assert "it may have worked again" in check_findings["repeated start"].detail
    assert check_findings["reset"].grade is OK


async def test_work_started_by_a_reset_is_detected(mqtt: MqttSettings, unique: str) -> None:
    check_findings = await check_of_device(mqtt, unique, lambda _: Message("", b'{"torque": 85}'))
    assert check_findings["reset"].grade is NOTE
    assert check_findings["repeated start"].grade is OK


async def test_answer_with_foreign_correlation_data_is_detected(mqtt: MqttSettings, unique: str) -> None:
    check_findings = await check_of_device(mqtt, unique, lambda _: Message("", correlation_data=bytes(16)))
    assert check_findings["correlation data"].grade is NOTE


async def test_answer_to_another_command_is_reported(mqtt: MqttSettings, unique: str) -> None:
    async def answer(message: Message) -> None:
        assert message.response_topic
        await session.publish(message.response_topic, user_properties={"causationid": "J7"})

    async with open_session(mqtt, f"{unique}-device") as session:
        await session.subscribe(f"{unique}/wrench/commands", answer)
        check_findings = await check(mqtt, unique, 0.5)
    assert check_findings["start"].grade is FAILED
    assert "an answer came with causationid J7" in check_findings["start"].detail


async def test_a_topic_without_subscriber_ends_the_test(mqtt: MqttSettings, unique: str) -> None:
    check_findings = await check(mqtt, unique, 30.0)
    assert check_findings["subscription"].grade is FAILED
    assert list(check_findings) == ["presence", "subscription"]
