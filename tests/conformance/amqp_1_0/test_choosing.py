"""AMQP 1.0, part 3, section 3.5: which messages of a source come, and whether they leave it."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import WrongSelector
from services.common.message.amqp_1_0.values import Described, Symbol, ULong
from services.gateway import vocabulary as to_broker
from tests.support.amqp_1_0_playbook import Playbook, receiving

_CODE = 0x0000468C_00000000
SELECTORS = (
    Described(Symbol("apache.org:selector-filter:string"), "colour = 'red'"),
    Described(Symbol("apache.org:jms-selector-filter:string"), "colour = 'red'"),
    Described(ULong(_CODE + 4), "colour = 'red'"),
)
BINDINGS = (
    Described(Symbol("apache.org:legacy-amqp-direct-binding:string"), "k"),
    Described(ULong(_CODE + 1), "k"),
)


def _consumed(book: Playbook) -> to_broker.Consume:
    consume = book.asked[-1]
    assert isinstance(consume, to_broker.Consume)
    return consume


@pytest.mark.parametrize("given", SELECTORS)
def test_a_selector(given: Described) -> None:
    """Section 3.5.8: the consumer gets what it selects, and the filter that is in effect is told."""
    book = Playbook().begun()
    [attach] = book.does(0, receiving("q", source={"filter": {Symbol("any"): given}}))
    assert attach.source.filter == {"any": given}
    assert (_consumed(book).selector, _consumed(book).browse) == ("colour = 'red'", False)


def test_copies() -> None:
    """Section 3.5.3, distribution mode copy: what is sent stays."""
    book = Playbook().begun()
    [attach] = book.does(0, receiving("q", source={"distribution_mode": "copy"}))
    assert attach.source.distribution_mode == "copy"
    assert _consumed(book).browse


@pytest.mark.parametrize("given", BINDINGS)
def test_a_binding(given: Described) -> None:
    """The filter's key binds the link to an exchange, also where its address has another key."""
    book = Playbook().begun()
    book.does(0, receiving("x/other", source={"filter": {Symbol("any"): given}}))
    bind = book.asked[-2]
    assert isinstance(bind, to_broker.Bind)
    assert (bind.source, bind.routing_key) == ("x", "k")


def test_a_selector_of_an_exchange() -> None:
    """The link's own queue is bound with it: what it does not select is not kept for it."""
    book = Playbook().begun()
    filters = {Symbol("one"): SELECTORS[0], Symbol("other"): BINDINGS[0]}
    [attach] = book.does(0, receiving("x", source={"filter": filters}))
    bind = book.asked[-2]
    assert isinstance(bind, to_broker.Bind)
    assert (bind.routing_key, bind.arguments) == ("k", {"x-filter-jms-selector": "colour = 'red'"})
    assert _consumed(book).selector == ""
    assert attach.source.filter == filters


@pytest.mark.parametrize("descriptor", [ULong(_CODE + 3), Symbol("apache.org:no-local-filter:list")])
@pytest.mark.parametrize(("address", "alone"), [("q", False), ("x", True)])
def test_not_its_own(address: str, alone: bool, descriptor: Any) -> None:
    """With no-local, messages of the link's own connection are not delivered, for any value of the filter."""
    book = Playbook().begun()
    filters = {Symbol("a"): Described(descriptor, []), Symbol("b"): SELECTORS[0]}
    [attach] = book.does(0, receiving(address, source={"filter": filters}))
    assert attach.source.filter == filters
    assert (_consumed(book).no_local, _consumed(book).alone) == (True, alone)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("q", {"filter": {Symbol("any"): Described(ULong(_CODE + 4), 1)}}),
        ("q", {"filter": {Symbol("any"): BINDINGS[0]}}),
        ("q", {"filter": {Symbol("one"): SELECTORS[0], Symbol("other"): SELECTORS[1]}}),
        (None, {"dynamic": True, "distribution_mode": "copy"}),
    ],
)
def test_what_says_nothing(address: str | None, source: dict[str, Any]) -> None:
    """It is refused as a field that is wrong, and the session goes on."""
    book = Playbook().begun()
    attach, detach = book.does(0, receiving(address, source=source))
    assert (attach.source, detach.error.condition) == (None, "amqp:invalid-field")


@pytest.mark.parametrize(("address", "asked"), [("q", to_broker.Consume), ("x", to_broker.Bind)])
def test_what_is_no_selector(address: str, asked: type[to_broker.Request]) -> None:
    """The broker says so, which compiles it when others have had their turns; it is refused as a wrong field."""
    book = Playbook().begun()
    book.refused[asked] = WrongSelector("it ends too early")
    source = {"filter": {Symbol("any"): Described(ULong(_CODE + 4), "colour =")}}
    attach, detach = book.does(0, receiving(address, source=source))
    assert (attach.source, detach.error.condition) == (None, "amqp:invalid-field")
    assert isinstance(book.asked[-1], to_broker.DropQueue if address == "x" else to_broker.Consume)


@pytest.mark.parametrize(("address", "given"), [("q", Described(ULong(_CODE + 2), {})), ("q", "colour = 'red'")])
def test_what_is_not_offered(address: str, given: object) -> None:
    """It is refused, not ignored: it would change which messages come."""
    book = Playbook().begun()
    attach, detach = book.does(0, receiving(address, source={"filter": {Symbol("any"): given}}))
    assert (attach.source, detach.error.condition) == (None, "amqp:not-implemented")
