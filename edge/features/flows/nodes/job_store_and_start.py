"""`job.store_and_start`: stores and starts a job from a Work Master."""

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import StartJob


class JobStoreAndStartConfig(NodeConfig, frozen=True):
    """The scope of the job and its Work Master; an input that is an object brings the parameters."""

    scope: str
    work_master: str


def _action(config: JobStoreAndStartConfig, attempt: Attempt) -> StartJob:
    return StartJob(config.scope, config.work_master, attempt.input)


KIND = NodeKind(
    "job.store_and_start",
    "Stores and starts a job from a Work Master.",
    JobStoreAndStartConfig,
    Inputs.ONE,
    Act(_action),
    repeatable=False,
)
