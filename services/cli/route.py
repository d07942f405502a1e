"""`hopline route`: where a message would go, as a tree of exchanges and queues."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from services.common.dry_run import DryRun, Hop, Visit
from services.common.printable import all_printable


def show(run: DryRun, console: Console) -> None:
    """Each exchange once, below the binding by which the message first comes to it."""
    run = all_printable(run)
    visits = {visit.exchange: visit for visit in run.visits}
    _print(console, _exchange(visits.pop(run.exchange)))
    pending = _branches(run.visits[0], "")
    while pending:
        indent, last, hop = pending.pop()
        visit = visits.pop(hop.to, None) if hop.to_exchange else None
        _print(console, Text(f"{indent}{'└' if last else '├'}─ ") + _hop(hop, visit))
        if visit:
            pending += _branches(visit, indent + ("   " if last else "│  "))
    if run.queues:
        count = f"{len(run.queues)} queue{'s' * (len(run.queues) > 1)}"
        _print(console, Text(f"{count}: {', '.join(run.queues)}", "green"))
    else:
        _print(console, Text("no queue: the message would be dropped, or returned if it is mandatory", "yellow"))


def _branches(visit: Visit, indent: str) -> list[tuple[str, bool, Hop]]:
    """The last first: they are taken from the end."""
    return [(indent, number == 0, hop) for number, hop in enumerate(reversed(visit.hops))]


def _hop(hop: Hop, visit: Visit | None) -> Text:
    how = {"implied": "by its name", "alternate": "nothing matched: alternate exchange"}.get(hop.via) or _binding(hop)
    if not hop.to_exchange:
        return Text.assemble("queue ", (hop.to, "bold"), (f"  {how}", "cyan"))
    if visit is None:
        return Text.assemble("exchange ", (hop.to, "bold"), (f"  {how}", "cyan"), ("  already visited", "dim"))
    return Text.assemble(_exchange(visit), (f"  {how}", "cyan"))


def _binding(hop: Hop) -> str:
    table = f" {json.dumps(hop.arguments)}" if hop.arguments else ""
    return f"binding '{hop.routing_key}'{table}"


def _exchange(visit: Visit) -> Text:
    name = visit.exchange or "(default)"
    if visit.type is None:
        return Text.assemble("exchange ", (name, "bold"), ("  does not exist", "red"))
    internal = ", internal: clients may not publish to it" if visit.internal else ""
    nothing = "" if visit.hops else "  nothing matches"
    return Text.assemble("exchange ", (name, "bold"), f" ({visit.type}{internal})", (nothing, "yellow"))


def _print(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True)
