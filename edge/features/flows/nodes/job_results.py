"""`job.results`: one member of the results of the last jobs, as a list."""

from edge.features.flows.nodes.delay import Seconds
from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import JobResults


class JobResultsConfig(NodeConfig, frozen=True):
    """The member of the result and the length of the window in seconds.

    `action` and `process` choose the results of one action of the recipe and of one joining process; without them those
    of all.
    """

    member: str
    seconds: Seconds
    action: str | None = None
    process: str | None = None


def _query(config: JobResultsConfig, attempt: Attempt) -> JobResults:
    after_ms = attempt.now - round(config.seconds * 1000)
    return JobResults(config.member, config.action, config.process, after_ms, attempt.now)


KIND = NodeKind("job.results", "A member of the results of the last jobs.", JobResultsConfig, Inputs.NONE, Read(_query))
