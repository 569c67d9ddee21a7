import asyncio

import pytest

from edge.foundation.errors import Unavailable
from edge.links.mqtt_confirmations import Confirmations, PublishRefused, UnconfirmedPublish

_LONG_S = 60.0


async def test_confirmation_is_passed_to_the_packet_it_names() -> None:
    confirmations = Confirmations(_LONG_S)
    first, second = confirmations.expect(1), confirmations.expect(2)
    confirmations.confirm(2, "second")
    confirmations.confirm(3, "of no packet")
    assert (first.done(), await second) == (False, "second")


async def test_packet_id_is_taken_until_it_is_dropped() -> None:
    confirmations = Confirmations(_LONG_S)
    confirmations.expect(7)
    assert 7 in confirmations
    confirmations.drop(7)
    assert 7 not in confirmations
    confirmations.confirm(7, "late")


async def test_every_packet_without_confirmation_ends_in_time() -> None:
    confirmations = Confirmations(0.02)
    early = confirmations.expect(1)
    confirmed = confirmations.expect(2)
    confirmations.confirm(2, "in time")
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            await early
        # The timer has run out once: one for a later packet follows it.
        with pytest.raises(TimeoutError):
            await confirmations.expect(3)
    assert confirmed.result() == "in time"


async def test_lost_connection_fails_every_packet() -> None:
    confirmations = Confirmations(_LONG_S)
    waiting, confirmed = confirmations.expect(1), confirmations.expect(2)
    confirmations.confirm(2, "before")
    confirmations.fail(Unavailable("is gone"))
    with pytest.raises(Unavailable, match="is gone"):
        await waiting
    assert await confirmed == "before"


def answered(reason: int) -> UnconfirmedPublish:
    puback: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    puback.set_result(reason)
    return UnconfirmedPublish(puback, "127.0.0.1:1883", "a/b")


@pytest.mark.parametrize(("reason", "is_read"), [(0x00, True), (0x10, False)])
async def test_accepted_message_has_a_subscriber_or_none(reason: int, *, is_read: bool) -> None:
    assert await answered(reason).confirmed() is is_read


@pytest.mark.parametrize(
    ("reason", "error", "text"),
    [
        (0x87, PublishRefused, "Not authorized"),
        (0x90, PublishRefused, "Topic name invalid"),
        (0x97, Unavailable, "Quota exceeded"),
        (0x7F, Unavailable, "reason code 0x7f"),
    ],
)
async def test_refused_message_names_the_reason(reason: int, error: type[Unavailable], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        await answered(reason).confirmed()
    assert type(caught.value) is error


async def test_message_without_puback_in_time_is_not_confirmed() -> None:
    puback: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    puback.set_exception(TimeoutError())
    with pytest.raises(Unavailable, match="did not confirm a publish to 'a/b'"):
        await UnconfirmedPublish(puback, "127.0.0.1:1883", "a/b").confirmed()
