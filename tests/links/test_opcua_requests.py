"""Each request of a session is reported once, with its result or its error."""

import asyncio

import pytest
from asyncua import ua

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.links.opcua_requests import RequestListener, ignore_request, reported, translate_errors
from edge.model.equipment_traffic import EquipmentRequest
from edge.opcua.client_transport import MessageTooLargeError


class Session:
    """A session that fails as its argument says."""

    def __init__(self, on_request: RequestListener) -> None:
        self.on_request = on_request

    @reported
    async def read(self, error: Exception | None = None) -> int:
        if error:
            raise error
        return 5


async def test_result_is_reported() -> None:
    requests: list[EquipmentRequest] = []
    assert await Session(requests.append).read() == 5
    assert requests == [EquipmentRequest("read", (), 5)]


@pytest.mark.parametrize(("error", "kind"), [(Refused("unreadable", "no"), "unreadable"), (Unavailable("no"), None)])
async def test_error_is_reported_and_raised(error: Refused | Unavailable, kind: str | None) -> None:
    requests: list[EquipmentRequest] = []
    with pytest.raises(type(error)):
        await Session(requests.append).read(error)
    (only,) = requests
    assert (only.error, only.kind or None) == ("no", kind)


async def test_request_without_a_listener_is_ignored() -> None:
    assert await Session(ignore_request).read() == 5


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionRefusedError(111, "refused"), "[Errno 111] refused"),
        (ua.UaError("a reason"), "a reason"),
        (ua.UaError(), "UaError"),
    ],
    ids=["timeout", "refused", "with text", "without text"],
)
def test_error_is_translated_to_unavailable(error: Exception, reason: str) -> None:
    with pytest.raises(Unavailable) as caught, translate_errors(Text("it fails"), "Look."):
        raise error
    assert (caught.value.message, caught.value.advice) == (f"it fails: {reason}", "Look.")


@pytest.mark.parametrize(
    "error",
    [
        MessageTooLargeError("5 bytes"),
        ua.uaerrors.BadResponseTooLarge(),
        ua.uaerrors.BadEncodingLimitsExceeded(),
        ua.uaerrors.BadTcpMessageTooLarge(),
    ],
)
def test_answer_beyond_the_size_limit_is_refused(error: Exception) -> None:
    """It was a lost connection: the next one met the same answer, without an end."""
    with pytest.raises(Refused) as caught, translate_errors(Text("it fails")):
        raise error
    assert caught.value.kind == "too_large"


def test_cancellation_carries_no_result_to_a_task_group() -> None:
    with pytest.raises(asyncio.CancelledError) as caught, translate_errors(Text("it fails")):
        raise asyncio.CancelledError("a result")
    assert caught.value.args == ()
