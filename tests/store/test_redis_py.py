"""redis-py in the store: its errors are those of the store."""

import pytest
from redis import exceptions

from edge.foundation.errors import Defect, EdgeError, Unavailable
from edge.store.errors import AccessDenied, OutOfMemory
from edge.store.redis_py import translate_errors


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (exceptions.OutOfMemoryError("command not allowed"), OutOfMemory, "out of memory"),
        (exceptions.ReadOnlyError("You can't write"), Unavailable, "replica"),
        (exceptions.NoPermissionError("User has no permissions"), AccessDenied, "our user may not"),
        (exceptions.ConnectionError("reset"), Unavailable, "does not answer: reset"),
        (TimeoutError(), Unavailable, "no reply in time"),
        (exceptions.ResponseError("UNBLOCKED the stream key no longer exists"), Unavailable, "consumer group"),
        (exceptions.ResponseError("wrong type"), Defect, "refuses a command"),
    ],
)
def test_redis_py_errors_are_classified_like_replies(error: Exception, kind: type[EdgeError], text: str) -> None:
    with pytest.raises(EdgeError, match=text) as caught, translate_errors():
        raise error
    assert type(caught.value) is kind
