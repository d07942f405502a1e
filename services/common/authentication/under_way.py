"""Sign-ins under way while their user or provider is changed: they have no connection yet that could be ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.authentication.principal import Principal


@dataclass(slots=True, eq=False)
class Ended:
    """The users and providers that ended or changed since one sign-in began."""

    users: set[tuple[str, str]] = field(default_factory=set)  # (provider, name)
    providers: set[str] = field(default_factory=set)

    def concerns(self, principal: Principal, asked: str) -> bool:
        """Whether the user has ended, or its provider, or the provider `asked`, which may be a composite."""
        return (principal.provider, principal.name) in self.users or bool({asked, principal.provider} & self.providers)


class UnderWay:
    """The sign-ins of one process that have no answer yet."""

    def __init__(self) -> None:
        self._all: set[Ended] = set()

    @contextmanager
    def one(self) -> Iterator[Ended]:
        """A sign-in: while it lasts, it notes what ends."""
        ended = Ended()
        self._all.add(ended)
        try:
            yield ended
        finally:
            self._all.discard(ended)

    def end_user(self, provider: str, name: str) -> None:
        """A provider's user was deleted or changed."""
        for each in self._all:
            each.users.add((provider, name))

    def end_provider(self, name: str) -> None:
        """A provider was removed or changed."""
        for each in self._all:
            each.providers.add(name)
