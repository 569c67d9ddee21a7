"""`job.results`: one member of the results of the last jobs, as a list."""

from edge.flows.nodes.delay import Seconds
from edge.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.flows.nodes.read import JobResults


class JobResultsConfig(NodeConfig, frozen=True):
    """The member of the result, the length of the window in seconds, and the action; without one all actions."""

    member: str
    seconds: Seconds
    action: str | None = None


def _query(config: JobResultsConfig, attempt: Attempt) -> JobResults:
    return JobResults(config.member, config.action, attempt.now - round(config.seconds * 1000), attempt.now)


KIND = NodeKind("job.results", "A member of the results of the last jobs.", JobResultsConfig, Inputs.NONE, Read(_query))
