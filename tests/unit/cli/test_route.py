from __future__ import annotations

import io

from rich.console import Console

from services.cli.route import show
from services.common.dry_run import DryRun, Hop, Visit


def _hop(to: str, *, to_exchange: bool = False, via: str = "binding", key: str = "", **arguments: object) -> Hop:
    return Hop.model_validate(
        {"to": to, "to_exchange": to_exchange, "via": via, "routing_key": key, "arguments": arguments}
    )


def _shown(*visits: Visit, queues: tuple[str, ...] = ()) -> list[str]:
    console = Console(width=200, file=io.StringIO(), record=True)
    run = DryRun(
        virtual_host="/", exchange=visits[0].exchange, routing_key="k", headers={}, visits=list(visits), queues=queues
    )
    show(run, console)
    return console.export_text().splitlines()


def _visit(name: str, *hops: Hop, kind: str | None = "topic", internal: bool = False) -> Visit:
    return Visit(exchange=name, type=kind, internal=internal, hops=list(hops))


def test_tree() -> None:
    """Exchanges and queues come as a tree, each with the binding that leads there; a circle is not walked twice."""
    lines = _shown(
        _visit("a", _hop("b", to_exchange=True, key="#"), _hop("q1", key="k.*"), _hop("q1", key="k.#")),
        _visit("b", _hop("a", to_exchange=True), _hop("q2", size=3), kind="headers", internal=True),
        queues=("q1", "q2"),
    )
    assert lines == [
        "exchange a (topic)",
        "├─ exchange b (headers, internal: clients may not publish to it)  binding '#'",
        "│  ├─ exchange a  binding ''  already visited",
        "│  └─ queue q2  binding '' {\"size\": 3}",
        "├─ queue q1  binding 'k.*'",
        "└─ queue q1  binding 'k.#'",
        "2 queues: q1, q2",
    ]


def test_default_exchange() -> None:
    """The default exchange leads to a queue by its name."""
    assert _shown(_visit("", _hop("q", via="implied", key="q"), kind="direct"), queues=("q",)) == [
        "exchange (default) (direct)",
        "└─ queue q  by its name",
        "1 queue: q",
    ]


def test_nowhere() -> None:
    """Where nothing matches, that is said, and what would become of the message."""
    assert _shown(_visit("a")) == [
        "exchange a (topic)  nothing matches",
        "no queue: the message would be dropped, or returned if it is mandatory",
    ]


def test_alternate_exchange() -> None:
    """An alternate exchange is told as such, also when it does not exist."""
    lines = _shown(_visit("a", _hop("b", to_exchange=True, via="alternate")), _visit("b", kind=None))
    assert lines[1] == "└─ exchange b  does not exist  nothing matched: alternate exchange"


def test_markup_is_text() -> None:
    """Names are shown as they are."""
    assert _shown(_visit("a", _hop("[red]q", key="[bold]")), queues=("[red]q",))[1:] == [
        "└─ queue [red]q  binding '[bold]'",
        "1 queue: [red]q",
    ]
