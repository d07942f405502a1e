from __future__ import annotations

from services.gateway.outcomes import ACCEPTED, PublishDisposition
from services.gateway.sessions.inbound_links import MOST, OWN, InboundLinks
from tests.support.messages import kind, published


def test_a_number_is_handed_back_as_it_came() -> None:
    """Whatever an engine counts by, and each link's by itself: here nothing is numbered."""
    links = InboundLinks()
    links.complete(7, 100, [0, 1, 2, 5], ACCEPTED)
    links.complete(8, 100, [0], ACCEPTED)
    assert links.take() == [
        PublishDisposition(7, 100, 102, ACCEPTED),
        PublishDisposition(7, 105, 105, ACCEPTED),
        PublishDisposition(8, 100, 100, ACCEPTED),
    ]
    assert links.take() == []


def test_how_a_link_settles_is_its_own() -> None:
    """A session's own begins as settled, until its client says that it wants to hear of its publishes."""
    links = InboundLinks()
    links.begin(3, settled=True)
    links.of(OWN)
    assert not links.confirmed
    links.begin(OWN, settled=False)
    assert links.confirmed
    links.begin(4, settled=False)
    links.end(OWN)
    assert links.confirmed
    links.end(4)
    assert not links.confirmed


def test_what_a_link_has_published() -> None:
    """By exchange, however mixed; nothing is known of a link that has ended."""
    links, mixed = InboundLinks(), [kind("x"), kind("y")]
    links.of(1).note(published([b"1", b"22"], *mixed), mixed)
    links.of(1).note(published([b"333"], mixed[0]), mixed[:1])
    assert links.published_by(1) == {"x": [2, 4], "y": [1, 2]}
    assert links.published_by(2) == {}
    links.end(1)
    assert links.published_by(1) == {}


def test_exchanges_of_a_link_are_bounded() -> None:
    """A client that publishes to ever new ones does not take ever more memory."""
    links = InboundLinks()
    for number in range(MOST + 1):
        links.of(OWN).note(published([b"x"], kind(f"x{number}")), [kind(f"x{number}")])
    assert len(links.published_by(OWN)) == MOST
    assert "x0" not in links.published_by(OWN)
