"""Ports as operators write them, and as gateways tell of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.common.ports.port import AMQP, Port, Terms, read_address
from services.common.ports.state import NOT_SAID, Account, Served, Where, listed


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:5673", "127.0.0.1", "5673"),
        ("*:5673", "", "5673"),
        (":5673", "", "5673"),
        ("[::1]:5673", "::1", "5673"),
        ("broker.example:5673", "broker.example", "5673"),
    ],
)
def test_addresses(text: str, host: str, port: str) -> None:
    """Host and port, with brackets around what has colons; a star, or nothing, is everywhere."""
    assert read_address(text) == (host, port)
    assert Terms.model_validate({"host": host, "port": port}).host == host


@pytest.mark.parametrize("text", ["", "5673", "host", "::1:5673", "[::1]", "host:", "host:http", "host:²", "[::1:5673"])
def test_what_is_no_address(text: str) -> None:
    """Is refused, with what is wanted."""
    with pytest.raises(ValueError, match="HOST:PORT is wanted"):
        read_address(text)


@pytest.mark.parametrize(
    "terms",
    [
        {"port": 0},
        {"port": 65536},
        {"host": "300.1.1.1"},
        {"host": "::zz"},
        {"host": "two words"},
        {"host": f"{'x' * 64}.example"},
        {"most": -1},
        {"protocols": ()},
        {"protocols": ("",)},
        {"transports": ("",)},
        {"transport": ("tls",)},
    ],
)
def test_bad_terms(terms: dict[str, Any]) -> None:
    """What means nothing, or is out of range, is no port."""
    with pytest.raises(ValidationError):
        Terms.model_validate({"port": 5673, **terms})


def test_what_it_takes() -> None:
    """Nothing said is everything; what is said is that, and a protocol as it is only where that is among it."""
    everything, some = Port(name="a", port=1), Port(name="b", port=1, transports=("tls", "websocket", "tls"))
    assert (everything.takes("tls"), everything.unsecured) == (True, True)
    assert (some.takes("tls"), some.takes("other"), some.unsecured) == (True, False, False)
    assert some.transports == ("tls", "websocket")


def test_there_and_back() -> None:
    """A record says all of it; what a newer version has put there besides is not minded."""
    port = Port(name="a", host="::1", port=5673, transports=("plain",), mechanisms=("PLAIN",), most=3)
    assert Port.from_json(port.to_json()) == port
    assert Port.from_json(b'{"name": "a", "port": 1, "colour": "red"}') == Port(name="a", port=1)
    assert port.address == "[::1]:5673"


def test_all_of_it_together() -> None:
    """Each port with every gateway that lives: where it listens, why not, or that it has not said."""
    settings, one, two = Port(name=AMQP, port=5672), Port(name="one", port=1), Port(name="two", port=2)
    older = one.model_copy(update={"most": 7})
    accounts = [
        Account(instance="g-1", served=(Served(port=settings, at=("*:5672",)), Served(port=one, at=("*:1",)))),
        Account(instance="g-2", served=(Served(port=settings, at=("*:5672",)), Served(port=one, trouble="taken"))),
        Account(instance="g-3", served=(Served(port=older, at=("*:1",)),)),
        Account(instance="dead", served=(Served(port=one, at=("*:1",)),)),
    ]
    found = listed([two, one], accounts, ["g-2", "g-1", "g-3", "g-4"])
    assert [(each.port, each.of_settings) for each in found] == [(settings, True), (one, False), (two, False)]
    assert [where.gateway for where in found[0].gateways] == ["g-1", "g-2"]
    assert found[1].gateways == (
        Where(gateway="g-1", at=("*:1",)),
        Where(gateway="g-2", trouble="taken"),
        Where(gateway="g-3", trouble=NOT_SAID),
        Where(gateway="g-4", trouble=NOT_SAID),
    )
    assert {where.trouble for where in found[2].gateways} == {NOT_SAID}


def test_settings_that_differ() -> None:
    """Gateways with other settings have other ports, each of which is listed with its own."""
    ports = [Port(name=AMQP, port=number) for number in (5673, 5672)]
    accounts = [Account(instance=f"g-{number}", served=(Served(port=port),)) for number, port in enumerate(ports)]
    found = listed([], accounts, ["g-0", "g-1"])
    assert [(each.port.port, each.gateways[0].gateway) for each in found] == [(5672, "g-1"), (5673, "g-0")]
