from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused, CommandInvalid, NotFound, PreconditionFailed, SyntaxFault
from tests.support.topology_bench import Bench


@pytest.mark.parametrize("name", ["amq.direct", "amq.topic", "amq.fanout", "amq.match", "amq.headers"])
def test_predeclared(bench: Bench, name: Any) -> None:
    """Each virtual host has the standard exchanges: they can be declared as they are, found, and not deleted."""
    kind = {"amq.match": "headers"}.get(name, name.removeprefix("amq."))
    assert not bench.exchange(name, kind, durable=True).created
    assert not bench.exchange(name, kind, passive=True).created
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'durable'"):
        bench.exchange(name, kind)
    with pytest.raises(AccessRefused, match="deletion of system exchange"):
        bench.do("delete_exchange", name=name)


def test_default_exchange_is_untouchable(bench: Bench) -> None:
    """The default exchange cannot be declared, deleted, bound to or from."""
    bench.queue("q")
    for kind, fields in [
        ("declare_exchange", {"name": "", "type": "direct"}),
        ("delete_exchange", {"name": ""}),
        ("bind", {"source": "", "destination": "q"}),
        ("unbind", {"source": "", "destination": "q", "routing_key": "q"}),
        ("bind", {"source": "amq.direct", "destination": "", "to_exchange": True}),
    ]:
        with pytest.raises(AccessRefused, match="operation not permitted on the default exchange"):
            bench.do(kind, **fields)
    assert bench.names("", "q") == {"q"}


def test_reserved_names(bench: Bench) -> None:
    """No client adds to amq.*; a passive declare of what does not exist is simply not found."""
    with pytest.raises(AccessRefused, match=r"exchange name 'amq\.mine' contains reserved prefix"):
        bench.exchange("amq.mine")
    with pytest.raises(NotFound, match=r"no exchange 'amq\.mine' in vhost '/'"):
        bench.exchange("amq.mine", passive=True)
    with pytest.raises(SyntaxFault):
        bench.exchange("x" * 256)


def test_unknown_type(bench: Bench) -> None:
    """A type that is not installed makes the command invalid."""
    with pytest.raises(CommandInvalid, match="unknown exchange type 'magic'"):
        bench.exchange("e", "magic")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"type": "topic"},
            "inequivalent arg 'type' for exchange 'e' in vhost '/': received 'topic' but current is 'direct'",
        ),
        ({"durable": True}, "inequivalent arg 'durable'"),
        ({"auto_delete": True}, "inequivalent arg 'auto_delete'"),
        ({"internal": True}, "inequivalent arg 'internal'"),
        ({"arguments": {"alternate-exchange": "amq.fanout"}}, "inequivalent arg 'alternate-exchange'"),
    ],
)
def test_inequivalent(bench: Bench, fields: Any, text: Any) -> None:
    """A declaration that says something else is refused, in words that clients know."""
    bench.exchange("e")
    with pytest.raises(PreconditionFailed, match=text):
        bench.exchange("e", **fields)


def test_alternate_must_be_text(bench: Bench) -> None:
    """An alternate-exchange that is no name is refused."""
    with pytest.raises(PreconditionFailed, match="invalid arg 'alternate-exchange'"):
        bench.exchange("e", arguments={"alternate-exchange": 5})


def test_delete(bench: Bench) -> None:
    """Deleting takes the bindings along; one in use stays if only an unused one may go; a missing one is no error."""
    bench.exchange("e")
    bench.queue("q")
    bench.bind("e", "q", "k")
    with pytest.raises(PreconditionFailed, match="exchange 'e' in vhost '/' in use"):
        bench.do("delete_exchange", name="e", if_unused=True)
    bench.do("delete_exchange", name="e")
    assert {key.kind for key, record in bench.effects.records.items() if record is None} == {"exchange", "binding"}
    assert bench.route("e").unknown_exchange
    bench.do("delete_exchange", name="e", if_unused=True)
    bench.exchange("e")
    assert bench.names("e", "k") == set()


def test_auto_delete_goes_with_its_last_binding(bench: Bench) -> None:
    """An auto-delete exchange lives until the last binding from it goes, and takes auto-delete ones before it along."""
    bench.queue("q")
    bench.exchange("last", auto_delete=True)
    bench.exchange("first", "fanout", auto_delete=True)
    bench.bind("first", "last", to_exchange=True)
    bench.bind("last", "q", "a")
    bench.bind("last", "q", "b")
    bench.do("unbind", source="last", destination="q", routing_key="a")
    assert not bench.route("last").unknown_exchange
    bench.do("delete_queue", name="q")
    assert bench.route("last").unknown_exchange
    assert bench.route("first").unknown_exchange


def test_auto_delete_cycle(bench: Bench) -> None:
    """Auto-delete exchanges that are bound to each other go together without harm."""
    for name in ("a", "b"):
        bench.exchange(name, "fanout", auto_delete=True)
    bench.bind("a", "b", to_exchange=True)
    bench.bind("b", "a", to_exchange=True)
    bench.bind("a", "a", to_exchange=True)
    bench.do("delete_exchange", name="a")
    assert bench.route("b").unknown_exchange
