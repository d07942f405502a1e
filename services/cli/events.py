"""`hopline events`: the bus, live in a terminal."""

from __future__ import annotations

from datetime import datetime

from rich.console import Console
from rich.text import Text

from services.common.bus.event import Event
from services.common.bus.facts import Gap
from services.common.bus.follow import Sequences, follow
from services.common.bus.subject import ALL
from services.common.printable import printable, printable_json

_COLOURS = {
    "created": "green", "attached": "green", "opened": "green", "acquired": "green",
    "deleted": "yellow", "detached": "yellow", "closed": "yellow", "released": "yellow", "cancelled": "yellow",
    "lost": "red", "gap": "red",
}  # fmt: skip


async def show(address: str, subject: str, console: Console) -> None:
    """Writes a line for each event on `subject`, for ever. Raises Unavailable when NATS is away at first."""
    sequences = Sequences()
    async for told in follow(address, subject):
        try:
            event = Event.from_json(told.payload)
        except ValueError:  # of a newer Hopline
            console.print(Text(printable(told.payload.decode(errors="replace"))), soft_wrap=True)
            continue
        if subject == ALL and (missing := sequences.missing_before(event)):
            console.print(
                Text(f"{missing} events of {printable(event.instance)} did not arrive here", "red"), soft_wrap=True
            )
        console.print(line(event), soft_wrap=True)


async def show_json(address: str, subject: str, console: Console) -> None:
    """The same as JSON lines, as they are told."""
    async for told in follow(address, subject):
        console.out(printable_json(told.payload.decode(errors="replace")), highlight=False)


def line(event: Event) -> Text:
    """Time, kind, fields, and the process that tells it."""
    when = datetime.fromtimestamp(event.time_ms / 1000).astimezone()
    facts = event.facts
    fields = [f"{name}={_shown(value)}" for name, value in facts if name != "kind" and value not in {"", None}]
    if isinstance(facts, Gap):
        fields = [f"{facts.count} events may not have arrived"]
    return Text.assemble(
        (when.strftime("%H:%M:%S.%f")[:-3], "dim"),
        "  ",
        (f"{facts.kind:<20}", _COLOURS.get(facts.kind.rpartition(".")[2], "")),
        "  ",
        " ".join(fields),
        (f"  {printable(event.instance)}", "dim"),
    )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else printable(str(value))
