import pytest

from edge.foundation.errors import Defect, EdgeError, Unavailable
from edge.store.errors import AccessDenied, OutOfMemory, error_of_reply


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
