"""The state of a gateway in words follows from facts alone."""

from edge.app.health_line import BrokerFacts, GatewayFacts, missing, problems, summary
from edge.foundation.clock_sync import Clock
from edge.foundation.text import Text
from edge.store.server_check import MemoryUsage
from tests.english import english

FACTS = GatewayFacts(
    brokers={"mes": BrokerFacts(connected=False, refused=("a/#",)), "tools": BrokerFacts(True, ("b/#",), ("c/#",))},
    interfaces=(Text("the station page cannot listen"),),
    stalled_work=("outbox",),
    lost_equipment=("wrench (refused)",),
    maybe_active=("press",),
    others=("disk full",),
)


def test_missing_connections_make_a_gateway_degraded() -> None:
    assert english([*missing(FACTS)]) == [
        "broker unavailable: mes",
        "broker refuses subscriptions of tools: b/#",
        "the station page cannot listen",
    ]
    assert not [*missing(GatewayFacts(brokers={"mes": BrokerFacts(connected=True)}, others=("disk full",)))]


def test_problems_are_named_in_their_order() -> None:
    assert english([*problems(FACTS)]) == [
        "no progress: outbox",
        *english([*missing(FACTS)]),
        "messages for tools wait: c/#",
        "equipment disconnected: wrench (refused)",
        "tool may still be active: press",
        "disk full",
    ]


def test_summary_names_a_clock_that_is_wrong_only() -> None:
    assert english([*summary(1, MemoryUsage(50, 100), Clock.SYNCHRONISED)]) == ["1 job at work", "store 50% full"]
    assert english([*summary(2, MemoryUsage(2 << 20, 0), Clock.UNSYNCHRONISED)]) == [
        "2 jobs at work",
        "store holds 2 MiB",
        "clock not synchronised",
    ]
