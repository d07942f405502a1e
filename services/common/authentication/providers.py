"""All providers: from operators' records, from the settings' file, and those that need no options."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

import structlog

from services.common.authentication.described import Described, kind_of, options_of, without_options
from services.common.authentication.provider import House, Provider
from services.common.errors import BrokerError, Unavailable
from services.common.few_lines import FewLines

log = structlog.get_logger()

_SECONDS = 600.0  # for one line about a provider: a port that waits for it asks every few seconds
_DO = "see hopline providers list, and set it again: hopline providers add"


class Providers:
    """Each is made at its first use, and made anew when its description changes."""

    def __init__(self, house: House, of_file: Mapping[str, Described]) -> None:
        self._house = house
        self._of_file = of_file
        self._of_records: Mapping[str, Described] = {}
        self._made: dict[str, tuple[Described, Provider]] = {}
        self._few = FewLines(1, _SECONDS)

    def take(self, of_records: Mapping[str, Described]) -> dict[str, Provider]:
        """Takes the descriptions on record; gives the made providers whose descriptions changed."""
        self._of_records = dict(of_records)
        changed = {
            name: provider for name, (described, provider) in self._made.items() if self._described(name) != described
        }
        for name in changed:
            del self._made[name]
        return changed

    def get(self, name: str) -> Provider:
        """Raises Unavailable for a provider that does not exist or cannot be made: no user signs in by it."""
        described = self._described(name)
        if described is None:
            raise self._unusable(name, "no provider has that name")
        made = self._made.get(name)
        if made is None or made[0] != described:
            made = self._made[name] = described, self._make(name, described)
        return made[1]

    def forget(self, user: str, provider: str) -> None:
        """Makes every provider that remembers an answer for `provider`'s user, as a composite may, ask again."""
        for _, each in self._made.values():
            each.answers.forget(user, provider)

    def troubles(self) -> dict[str, str]:
        """Problems of the providers used since the process started."""
        return {name: provider.trouble for name, (_, provider) in self._made.items() if provider.trouble}

    def closing(self) -> list[Awaitable[None]]:
        """Forgets all providers; gives their `close` calls."""
        made, self._made = self._made, {}
        return [provider.close() for _, provider in made.values()]

    def _described(self, name: str) -> Described | None:
        return self._of_file.get(name) or self._of_records.get(name) or without_options(name)

    def _make(self, name: str, described: Described) -> Provider:
        try:
            opened = described.opened(name, self._house.sealing)
            return kind_of(opened)(name, options_of(opened), self._house)
        except BrokerError as error:
            raise self._unusable(name, error.text) from None

    def _unusable(self, name: str, reason: str) -> Unavailable:
        event = "an authentication provider cannot be used: no client can sign in by it"
        self._few.say(log.error, event, apart_by=name, provider=name, reason=reason, do=_DO)
        return Unavailable(f"authentication provider '{name}' cannot be used")
