"""What one peer of AMQP 1.0 can make a gateway hold: links may be many, and live long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.sections import Properties
from services.gateway.protocols.amqp_1_0.performatives import Attach
from tests.support.amqp_1_0_playbook import Playbook, data, framed, receiving, sending, transfer

ENDS = pytest.mark.parametrize("end", [sending, receiving])


@ENDS
def test_what_an_attach_says(end: Any) -> None:
    """Section 2.7.3: nothing of it is kept that is not needed when it is answered: 72 KB were over a megabyte."""
    book = Playbook().begun()
    many = {v.Symbol(f"p{number}"): None for number in range(1000)}
    book.does(0, end("q", properties=many))
    [link] = book.engine._sessions[0]._links.values()
    assert link._attach == Attach("", 0, end("q").role)


@ENDS
def test_names_of_links(end: Any) -> None:
    """Section 2.6.1: any name will do, of a length with which many can be kept."""
    book = Playbook().begun()
    assert book.does(0, replace(end("q"), name="n" * 1024))[0].name == "n" * 1024
    attach, detach = book.does(0, replace(end("q", 1), name="n" * 1025))
    assert (attach.source if attach.role is False else attach.target) is None
    assert detach.error.condition == "amqp:invalid-field"


def test_tags_of_long_names() -> None:
    """Every delivery's record says the tag."""
    book = Playbook().begun()
    book.says(0, replace(receiving("q"), name="é" * 500))
    assert book.asked[-1].tag == "é" * 100 + ".1.1"  # type: ignore[attr-defined]


def test_kinds_of_messages() -> None:
    """Those that differ in their keys are remembered by number and size, of all links of a connection together."""
    book = Playbook().sender("x")
    book.does(0, sending("x", 1))
    for number in range(6000):
        message = composite.write(Properties(subject=f"{number}" * 50)) + data()
        book.engine.receive(framed(0, transfer(number, number % 2, settled=True), message))
    kinds = book.engine._peer.kinds
    assert 1000 < len(kinds) + len(kinds._aside) < 4000  # of 150 to 200 bytes: half a megabyte
