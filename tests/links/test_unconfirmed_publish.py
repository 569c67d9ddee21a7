"""The reason code of a PUBACK decides whether a message arrived, is refused for good, or has to be sent again."""

import asyncio

import pytest

from edge.foundation.errors import Unavailable
from edge.links.unconfirmed_publish import PublishRefused, UnconfirmedPublish


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
