"""What is logged and answered of an error of a device."""

from edge.foundation.errors import EdgeError

# Maximum length, in characters, of a message of a device.
_MESSAGE_LIMIT = 500


def root_cause(error: Exception) -> Exception:
    """Return the first unexpected exception of nested exception groups; without one, the first exception."""
    while isinstance(error, ExceptionGroup):
        # The group may also hold the loss of the connection, which is expected.
        _expected, unexpected = error.split(EdgeError)
        error = (unexpected or error).exceptions[0]
    return error


def bounded_message(error: EdgeError) -> str:
    """Return the message of an error, cut to `_MESSAGE_LIMIT` characters; replace characters that cannot be encoded."""
    message = error.message if len(error.message) <= _MESSAGE_LIMIT else f"{error.message[:_MESSAGE_LIMIT]}…"
    return message.encode(errors="replace").decode()
