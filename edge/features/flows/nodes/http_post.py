"""`http.post`: sends its input to a resource as JSON."""

from collections.abc import Iterable

from edge.features.flows.nodes.http_get import url_faults
from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import PostResource


class HttpPostConfig(NodeConfig, frozen=True):
    """The URL, http or https."""

    url: str


def _faults(config: HttpPostConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    return url_faults(config.url, ("http", "https"))


def _action(config: HttpPostConfig, attempt: Attempt) -> PostResource:
    return PostResource(config.url, attempt.input)


KIND = NodeKind(
    "http.post",
    "Sends its input to a resource.",
    HttpPostConfig,
    Inputs.ONE,
    Act(_action),
    repeatable=False,
    faults=_faults,
)
