"""Execute the acknowledgement of results, and find the results that the MES receives with an answer."""

from collections.abc import Sequence

from edge.foundation.errors import Refused
from edge.model.isa95 import JobResponse, ResponseAnswer, ResponsesAnswer, ReturnStatus
from edge.model.result_message import AcknowledgeAnswer, AcknowledgeCall
from edge.station.retention import Deliveries


async def acknowledge(deliveries: Deliveries | None, scope: str, call: AcknowledgeCall) -> AcknowledgeAnswer:
    """Record that the MES has results. Raises Refused where no results are kept, Unavailable without the store."""
    if deliveries is None:
        raise Refused("unknown_type", "this gateway keeps no results.", "Call a job method or send settings.")
    acknowledged = tuple(await deliveries.acknowledge(scope, call.job_order_ids))
    return AcknowledgeAnswer(return_status=ReturnStatus.NO_ERROR, acknowledged=acknowledged)


def responses_in(data: object) -> Sequence[JobResponse]:
    """Return the job responses in the data of an answer: the MES that receives it has their results."""
    match data:
        case ResponseAnswer(job_response=JobResponse() as response):
            return (response,)
        case ResponsesAnswer(job_responses=responses):
            return responses or ()
        case _:
            return ()
