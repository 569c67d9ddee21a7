"""The answers of the simulated controller, message by message."""

import pytest

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.features.openprotocol.protocol.session import DeclinedError, open_openprotocol
from edge.features.openprotocol.simulated.controller import open_openprotocol_controller


async def test_every_message_of_the_gateway_is_answered() -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        controller.end_tightening()
        async with open_openprotocol("127.0.0.1", controller.server.port) as session:
            for message, answer in (
                (MidFrame(Mid.PARAMETER_SETS), Mid.PARAMETER_SETS_REPLY),
                (new_message(Mid.PARAMETER_SET, id=3), Mid.PARAMETER_SET_REPLY),
                (MidFrame(Mid.JOBS, revision=2), Mid.JOBS_REPLY),
                (new_message(Mid.JOB, id=1), Mid.JOB_REPLY),
                (MidFrame(Mid.TOOL), Mid.TOOL_REPLY),
                (new_message(Mid.OLD_RESULT, result=1), Mid.OLD_RESULT_REPLY),
                (MidFrame(Mid.TIME), Mid.TIME_REPLY),
            ):
                reply = await session.request(message, {answer})
                assert parse_message(reply)
            for command in (
                new_message(Mid.SELECT_JOB, 2, id=1),
                new_message(Mid.RESTART_JOB, 2, id=1),
                new_message(Mid.IDENTIFIER, identifier="A"),
                MidFrame(Mid.ENABLE_TOOL),
                MidFrame(Mid.ABORT_JOB),
                MidFrame(Mid.DISABLE_TOOL),
                MidFrame(Mid.ACKNOWLEDGE_ALARM),
                new_message(Mid.SET_TIME, time=controller.time),
            ):
                await session.request(command)
        assert (controller.job, controller.identifier, controller.stopped) == (0, "A", ["A"])


async def test_second_subscription_is_declined_and_the_current_value_is_sent() -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        controller.set_identifier("A")
        controller.break_down()
        async with open_openprotocol("127.0.0.1", controller.server.port) as session:
            messages = session.messages()
            pairs = (
                (Mid.IDENTIFIER_SUBSCRIBE, Mid.IDENTIFIER_CHANGED, Mid.IDENTIFIER_UNSUBSCRIBE),
                (Mid.PARAMETER_SET_SUBSCRIBE, Mid.PARAMETER_SET_SELECTED, Mid.PARAMETER_SET_UNSUBSCRIBE),
                (Mid.ALARM_SUBSCRIBE, Mid.ALARM_STATUS, Mid.ALARM_UNSUBSCRIBE),
            )
            for subscribe, message, unsubscribe in pairs:
                await session.request(MidFrame(subscribe))
                assert (await anext(messages)).mid == message
                with pytest.raises(DeclinedError, match="already"):
                    await session.request(MidFrame(subscribe))
                await session.request(MidFrame(unsubscribe))
                with pytest.raises(DeclinedError, match="not subscribed"):
                    await session.request(MidFrame(unsubscribe))


async def test_unknown_message_and_wrong_data_are_declined() -> None:
    async with (
        open_openprotocol_controller() as controller,
        open_openprotocol("127.0.0.1", controller.server.port) as session,
    ):
        for message, reason in (
            (MidFrame(2500), "not known"),
            (MidFrame(Mid.SELECT_PARAMETER_SET, b"abc"), "invalid data"),
            (MidFrame(Mid.ENABLE_TOOL, revision=2), "revision"),
            (new_message(Mid.OLD_RESULT, result=7), "no such result"),
        ):
            with pytest.raises(DeclinedError, match=reason):
                await session.request(message)
