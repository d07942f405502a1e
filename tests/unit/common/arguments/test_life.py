"""Broker-J's words for whose a queue is, and until when it is there, beside the flags of 0-9-1."""

from __future__ import annotations

import pytest

from services.common.arguments import queue
from services.common.arguments.life import Wished, may_end, told, wished
from services.common.topology.life import Scope, Unused


@pytest.mark.parametrize(
    ("said", "flags", "expected"),
    [
        ({}, {}, Wished(Scope.NOBODY, Scope.NOBODY, Unused.STAYS)),
        ({}, {"exclusive": True}, Wished(Scope.CONNECTION, Scope.CONNECTION, Unused.STAYS)),
        ({}, {"exclusive": True, "auto_delete": True}, Wished(Scope.CONNECTION, Scope.CONNECTION, Unused.NO_CONSUMERS)),
        ({"exclusive": "CONTAINER"}, {}, Wished(Scope.CONTAINER, Scope.NOBODY, Unused.STAYS)),
        ({"exclusive": "LINK"}, {"auto_delete": True}, Wished(Scope.LINK, Scope.NOBODY, Unused.NO_CONSUMERS)),
        (
            {"exclusive": "PRINCIPAL", "lifetimePolicy": "DELETE_ON_SESSION_END"},
            {},
            Wished(Scope.PRINCIPAL, Scope.SESSION, Unused.STAYS),
        ),
        (
            {"lifetimePolicy": "DELETE_ON_SESSION_END"},
            {"exclusive": True},
            Wished(Scope.CONNECTION, Scope.SESSION, Unused.STAYS),
        ),
    ],
)
def test_together(said: dict[str, str], flags: dict[str, bool], expected: Wished) -> None:
    """What is said by a flag is as what is said by an argument."""
    assert (
        wished(said, exclusive=flags.get("exclusive", False), auto_delete=flags.get("auto_delete", False)) == expected
    )


def test_every_word() -> None:
    """Means something, by itself."""
    for argument, words in ((queue.EXCLUSIVITY, queue.OWNERS), (queue.LIFETIME, queue.LIFETIMES)):
        found = {wished({argument.name: word}, exclusive=False, auto_delete=False) for word in words}
        assert len(found) >= len(words) - 1  # of two words of lifetimes the meaning is one


@pytest.mark.parametrize(
    ("table", "ends", "properties"),
    [
        ({}, False, (False, False)),
        ({"qpid.exclusivity_policy": "SESSION"}, True, (True, False)),
        ({"exclusive": "NONE", "lifetimePolicy": "PERMANENT"}, True, (False, False)),
        ({"qpid.lifetime_policy": "DELETE_ON_NO_LINKS"}, True, (False, True)),
    ],
)
def test_what_rules_of_access_see(table: dict[str, object], ends: bool, properties: tuple[bool, bool]) -> None:
    """An argument is no way around a rule about exclusive queues, or such as go by themselves."""
    assert (may_end(table), told(table)) == (ends, properties)
