"""What health says of ports that are not open, or not as they should be."""

from __future__ import annotations

from typing import Any

from services.mgmt.ports_note import ports_note

_BAD = "/etc/broker.pem: the key is another certificate's"


def _served(name: str, at: str = "", trouble: str = "", amiss: str = "") -> dict[str, Any]:
    port = {"name": name, "port": 5671}
    return {"port": port, "at": [at] if at else [], "trouble": trouble, "amiss": amiss}


def _said(instance: str, *served: dict[str, Any]) -> dict[str, Any]:
    return {"instance": instance, "served": list(served)}


def test_all_is_well() -> None:
    """Nothing is said, nor of a record that cannot be read."""
    assert ports_note([_said("gateway-1", _served("amqp", "h:1")), {"address": "g"}, 7]) == {}


def test_what_every_gateway_says() -> None:
    """Is said once, with the port, and whether it is open."""
    its = _served("amqp", "h:1", amiss=_BAD), _served("amqps", trouble=_BAD)
    told = f"amqp (*:5671): {_BAD}; amqps (*:5671) is not open: {_BAD}"
    assert ports_note([_said("gateway-1", *its), _said("gateway-2", *its)]) == {"ports": told}


def test_what_one_says() -> None:
    """Is said with its name, also where another has that port of the settings."""
    said = [_said("gateway-1", _served("amqps", "h:1")), _said("gateway-2", _served("amqps", trouble=_BAD))]
    assert ports_note(said) == {"ports": f"gateway-2: amqps (*:5671) is not open: {_BAD}"}


def test_an_address_that_another_gateway_has() -> None:
    """Of an operator's port it is enough that one has it; it is said where none has."""
    taken = _said("gateway-1", _served("inner", trouble="Address already in use"))
    assert ports_note([taken, _said("gateway-2", _served("inner", "h:1"))]) == {}
    assert ports_note([taken]) == {"ports": "inner (*:5671) is not open: Address already in use"}
