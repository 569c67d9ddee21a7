"""asyncua's client for the tests: it bears a server on a loaded machine."""

from asyncua import Client

# By default asyncua waits 4 s for an answer, and leaves the server after 1 s without one.
_PATIENCE_SECONDS = 60


def patient_client(url: str) -> Client:
    """Return a client of the server at `url` that waits a minute for each answer."""
    return Client(url, timeout=_PATIENCE_SECONDS, watchdog_intervall=_PATIENCE_SECONDS)
