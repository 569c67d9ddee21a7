import asyncio

import pytest

from edge.foundation.errors import Unavailable
from edge.links.confirmations import Confirmations

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
