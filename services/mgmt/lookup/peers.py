"""User and address of connections: on record once in an hour, and joined to the rows that name the connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from services.common.question import Sought
from services.common.trace import Journey, Message, Step
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.hours import hour_of
from services.mgmt.lookup.patterns import fits, glob_of

_EVER = (1 << 63) - 1
_MOST = 100_000  # connections that one pattern stands for; beyond, the newest
_NAMED = "connection in (select unnest($connections::varchar[]))"
_USER = '"user"'
_FIT = (
    f"virtual_host = $virtual_host and ({fits(_USER, 'who')} or {fits('peer', 'who')}"
    f" or peer glob {glob_of('who')} || ':*')"
)

_Key = tuple[str, str]


class Peers:
    """Every method raises what `Database.select` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def introduce(self, journeys: list[Journey]) -> list[Journey]:
        """With user and address in the steps of connections that are on record."""
        steps = [step for journey in journeys for message in journey.messages for step in message.steps]
        known = self._known([step for step in steps if step.connection])
        if not known:
            return journeys

        def told(message: Message) -> Message:
            return message.model_copy(update={"steps": list(_told(message.steps, known))})

        return [journey.model_copy(update={"messages": list(map(told, journey.messages))}) for journey in journeys]

    def connections(self, sought: Sought, who: str) -> list[str]:
        """Those whose user or address fits `who`, with or without the port, however old."""
        if not who:
            return []
        hours = [hour for hour in self._database.hours("connections") if hour <= hour_of(sought.until_us or _EVER)]
        values = {"virtual_host": sought.virtual_host, "who": who}
        rows = self._database.select("connections", "connection, epoch_us(time)", _FIT, values, hours)
        newest = sorted(rows, key=lambda row: row[1], reverse=True)
        return list(dict.fromkeys(row[0] for row in newest))[:_MOST]

    def _known(self, steps: list[Step]) -> dict[_Key, tuple[str, str]]:
        if not steps:
            return {}
        # In the hour of the row; in one beside it, where that is missing on record.
        near = {hour_of(step.time_us) + beside for step in steps for beside in (-1, 0, 1)}
        hours = [hour for hour in self._database.hours("connections") if hour in near]
        names = _once(step.connection for step in steps)
        values, within = {"connections": names}, {"connection": (min(names), max(names))}
        columns = 'instance, connection, "user", peer'
        rows = self._database.select("connections", columns, _NAMED, values, hours, within=within)
        return {(instance, connection): (user, peer) for instance, connection, user, peer in rows}


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _told(steps: list[Step], known: dict[_Key, tuple[str, str]]) -> Iterator[Step]:
    for step in steps:
        user, peer = known.get((step.instance, step.connection), ("", ""))
        yield step.model_copy(update={"user": user, "peer": peer}) if user or peer else step
