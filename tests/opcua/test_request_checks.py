"""Requests are validated and bounded before any work."""

import math

import pytest
from asyncua import ua
from asyncua.common.utils import ServiceError

from edge.opcua import limits
from edge.opcua.request_checks import check_count, check_subscriptions, clamp, clamp_monitoring


@pytest.mark.parametrize(
    ("count", "code"), [(0, ua.StatusCodes.BadNothingToDo), (1001, ua.StatusCodes.BadTooManyOperations)]
)
def test_requests_with_too_few_or_many_operations_are_refused(count: int, code: int) -> None:
    with pytest.raises(ServiceError) as caught:
        check_count(1000, [None] * count)
    assert caught.value.code == code
    check_count(1000, [None] * 1000)


def test_requests_with_too_many_subscriptions_are_refused() -> None:
    with pytest.raises(ServiceError):
        check_subscriptions(range(201), 200)
    check_subscriptions([], 200)  # a session without subscriptions is closed by the same code


@pytest.mark.parametrize(("asked", "clamped"), [(5.0, 5.0), (0.0, 1.0), (99.0, 9.0), (math.nan, 1.0), (math.inf, 9.0)])
def test_numbers_are_clamped_to_their_bounds(asked: float, clamped: float) -> None:
    assert clamp(asked, 1.0, 9.0) == clamped


def test_value_queues_are_bounded() -> None:
    asked = ua.MonitoringParameters(QueueSize=10_000)
    clamp_monitoring(asked, limits.DEFAULTS)
    assert asked.QueueSize == limits.DEFAULTS.queued_values
