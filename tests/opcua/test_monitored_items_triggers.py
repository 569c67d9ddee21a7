"""Links between monitored items are bounded, and removed with their items."""

from edge.opcua.monitored_items import TriggerLinks

MAX_LINKS = 50


def test_a_trigger_returns_its_linked_items() -> None:
    links = TriggerLinks(MAX_LINKS)
    assert links.add(1, 2)
    assert links.add(1, 3)
    assert links.linked(1) == (2, 3)
    assert links.linked(2) == ()
    assert links.remove(1, 2)
    assert not links.remove(1, 2)
    assert links.linked(1) == (3,)


def test_links_beyond_the_limit_are_refused_until_one_is_removed() -> None:
    links = TriggerLinks(MAX_LINKS)
    assert all(links.add(1, number) for number in range(MAX_LINKS))
    assert links.add(1, 0)
    assert not links.add(2, 1)
    links.forget(0)
    assert links.add(2, 1)
