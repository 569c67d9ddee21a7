"""`http.get`: the JSON or text of a resource."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import HttpResource


class HttpGetConfig(NodeConfig, frozen=True):
    """The URL, http or https."""

    url: str


def url_faults(url: str, schemes: Iterable[str]) -> Iterable[str]:
    """Report what is wrong with a URL."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        yield f"{url!r} is not a URL of {' or '.join(schemes)}"


def _faults(config: HttpGetConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    return url_faults(config.url, ("http", "https"))


def _query(config: HttpGetConfig, _attempt: Attempt) -> HttpResource:
    return HttpResource(config.url)


KIND = NodeKind("http.get", "The JSON or text of a resource.", HttpGetConfig, Inputs.NONE, Read(_query), faults=_faults)
