"""The times of a tightening controller with Open Protocol."""

from msgspec import Struct

from edge.features.openprotocol.protocol.session import DEFAULT_TIMES, SessionTimes


class OpenProtocolTimes(Struct, frozen=True):
    """Times of the session, the seconds between two polls for a result, and those to wait for its curves.

    `pause` are the seconds between two series of requests for missed results, `again` those until ones without an
    answer are repeated.
    """

    session: SessionTimes = DEFAULT_TIMES
    poll: float = 5.0
    curves: float = 2.0
    pause: float = 1.0
    again: float = 300.0
