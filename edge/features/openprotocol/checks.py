"""Examines tightening controllers with Open Protocol: whether they answer, and as what."""

from collections.abc import AsyncIterator, Iterator

from edge.app.advice import connection_advice
from edge.config import Settings
from edge.features.openprotocol.makes import make_of
from edge.features.openprotocol.protocol.mids import Decline, Mid
from edge.features.openprotocol.protocol.session import DeclinedError, SessionTimes, open_openprotocol
from edge.features.openprotocol.settings import OpenProtocolSettings, address_of
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text, join_texts
from edge.links.connection_fault import fault_of
from edge.model.finding import Examination, HealthFinding, failing, ok

_SERVES_ANOTHER = Text.of("it serves another client, which is the gateway, or why the gateway is not connected")
_TIMES = SessionTimes(connect=3.0, answer=3.0)


async def examine_controller(name: str, settings: OpenProtocolSettings) -> AsyncIterator[HealthFinding]:
    """Start the communication with a controller and stop it; nothing is subscribed to or changed."""
    subject = Text.of("equipment {name}", name=name)
    host, port = address_of(settings)
    try:
        async with open_openprotocol(host, port, times=_TIMES, link_layer=False) as session:
            found = session.controller
            revision = session.revisions[Mid.START]
        what = Text.of(
            "{make}, {name!r}, revision {revision}", make=make_of(found).name, name=found["name"], revision=revision
        )
        yield ok(subject, Text.of("answers at {url}: {what}", url=settings.url, what=what))
    except DeclinedError as declined:
        if declined.error == Decline.CONNECTED_ALREADY:
            yield ok(
                subject, Text.of("answers at {url}: {serves_another}", url=settings.url, serves_another=_SERVES_ANOTHER)
            )
        else:
            yield failing(subject, declined.text, "Check the settings of Open Protocol at the controller.")
    except Refused as refusal:
        yield failing(
            subject,
            Text.of("the program at {url} is not a controller: {reason}", url=settings.url, reason=refusal),
            "Correct its url.",
        )
    except Unavailable as error:
        yield failing(
            subject, error.text, join_texts(" ", (connection_advice(fault_of(error)), Text.of("Jobs wait for it.")))
        )


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examination of each controller."""
    for name, section in settings.southbound.items():
        if isinstance(section, OpenProtocolSettings):
            yield Text.of("equipment {name}", name=name), examine_controller(name, section)
