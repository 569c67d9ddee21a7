"""Finds the results that the MES receives with an answer."""

from collections.abc import Sequence

from edge.model.isa95 import JobResponse, ResponseAnswer, ResponsesAnswer


def responses_in(data: object) -> Sequence[JobResponse]:
    """Return the job responses in the data of an answer: the MES that receives it has their results."""
    match data:
        case ResponseAnswer(job_response=JobResponse() as response):
            return (response,)
        case ResponsesAnswer(job_responses=responses):
            return responses or ()
        case _:
            return ()
