"""What flows keep in Redis."""

from collections.abc import Callable
from typing import Final

from edge.store.keys import BACKLOG, OURS, STREAM, Keys, KeyType, entered, key, key_of, key_of_two, key_part

FLOW: Final = "until the flow is deleted"
CYCLE: Final = "7 days after its end, as far as `[flows] kept_mb` allows; or `[flows] kept_cycles` later cycles"
NODE_TASK: Final = "24 hours after the end of its cycle, and no longer than the cycle"
ATTEMPT: Final = "24 hours after it was written last, and no longer than its cycle"
WORKER: Final = "60 seconds after the last heartbeat"


def node_task_id(flow: str, cycle: int, node: str) -> str:
    """Return the id of a node task, which is a part of its keys."""
    return f"{key_part(flow)}_{cycle}_{key_part(node)}"


def _key_of_node(type: KeyType, name: str, lifetime: str, purpose: str) -> Callable[[Keys, str, int, str], str]:
    """Enter a key of a node of a cycle of a flow."""
    _, tail = name.split("{node:part}")

    def build(keys: Keys, flow: str, cycle: int, node: str) -> str:
        return f"{keys.prefix}:node_tasks:{node_task_id(flow, cycle, node)}{tail}"

    return entered(build, type, name, lifetime, purpose)


flow = key_of("hash", "flow:{flow:part}", FLOW, "A flow with its document and state")
flow_cycle = key_of_two("hash", "flow:{flow:part}:cycle:{cycle}", CYCLE, "A cycle of a flow")
node_task = _key_of_node(
    "string", "node_tasks:{flow:part}_{cycle}_{node:part}", NODE_TASK, "A node task with its state, as JSON"
)
node_output = _key_of_node(
    "string",
    "node_tasks:{flow:part}_{cycle}_{node:part}:output",
    NODE_TASK,
    "An output of more than 64 KiB, as JSON",
)
node_worker = _key_of_node(
    "string",
    "node_tasks:{flow:part}_{cycle}_{node:part}:worker",
    ATTEMPT,
    "The worker that runs a node task, with its progress, as JSON",
)
node_answer = key_of(
    "string", "node_tasks:{task}:answer", ATTEMPT, "The answer of equipment to a command of a node task, as JSON"
)
node_work = key_of(
    "stream", "node_work:{kind}", BACKLOG, "The node tasks of a kind for the consumer group of the workers"
)
node_results = key("stream", "node_results", BACKLOG, "The results of workers that no gateway has taken yet")
worker = key_of("string", "workers:{id}", WORKER, "A worker with its kinds and its last heartbeat, as JSON")
flow_schedule = key("zset", "flows:schedule", OURS, "All flows by the instant of their next cycle")
flows_running = key("set", "flows:running", OURS, "The flows that have a running cycle")
flow_signals = key("stream", "flows:signals", STREAM, "The flows that a process other than their gateway changed")
