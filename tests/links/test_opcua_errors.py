"""Errors of the network and of asyncua become Unavailable, with what failed, why, and what to do."""

import asyncio

import pytest
from asyncua import ua

from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua_errors import translate_errors
from edge.opcua.client_transport import MessageTooLargeError


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
    with pytest.raises(Unavailable) as caught, translate_errors("it fails", "Look."):
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
    with pytest.raises(Refused) as caught, translate_errors("it fails"):
        raise error
    assert caught.value.kind == "too_large"


def test_cancellation_carries_no_result_to_a_task_group() -> None:
    with pytest.raises(asyncio.CancelledError) as caught, translate_errors("it fails"):
        raise asyncio.CancelledError("a result")
    assert caught.value.args == ()
