import pytest
from redis import exceptions

from edge.errors import Defect, EdgeError, Unavailable
from edge.store.errors import AccessDenied, OutOfMemory, error_of_reply
from edge.store.redis_py import translate_errors


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("WRONGPASS invalid username-password pair or user is disabled.", AccessDenied),
        ("NOAUTH HELLO must be called with the client already authenticated", AccessDenied),
        ("ERR AUTH <password> called without any password configured for the default user.", AccessDenied),
        ("NOPERM User edge has no permissions to run the 'set' command", AccessDenied),
        ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
        ("READONLY You can't write against a read only replica.", Unavailable),
        ("LOADING Valkey is loading the dataset in memory", Unavailable),
        ("MASTERDOWN Link with MASTER is down", Unavailable),
        ("MISCONF Errors writing to the AOF file: No space left on device", Unavailable),
        ("NOGROUP No such key", Unavailable),
        ("ERR unknown command 'X'", Defect),
    ],
)
def test_error_reply_is_classified_by_its_first_word(reply: str, kind: type[EdgeError]) -> None:
    error = error_of_reply(reply)
    assert type(error) is kind
    assert reply in error.message
    assert error.advice


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
