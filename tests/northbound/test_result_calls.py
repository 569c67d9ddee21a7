"""The results in an answer are found, and no others."""

from edge.model.isa95 import JobResponse, MethodAnswer, ResponseAnswer, ResponsesAnswer, ReturnStatus
from edge.northbound.result_calls import responses_in

RESPONSE = JobResponse(job_response_id="R1", job_order_id="J1", job_state=())


def test_results_of_an_answer_are_found() -> None:
    status = ReturnStatus.NO_ERROR
    assert responses_in(ResponseAnswer(job_response=RESPONSE, return_status=status)) == (RESPONSE,)
    assert responses_in(ResponsesAnswer(job_responses=(RESPONSE,), return_status=status)) == (RESPONSE,)
    assert responses_in(ResponseAnswer(job_response=None, return_status=status)) == ()
    assert responses_in(MethodAnswer(return_status=status)) == ()
    assert responses_in(None) == ()
