"""Who signs in while its user, or a provider, is changed: nobody knows of that connection yet, so it would stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.authentication.principal import Principal


@dataclass(slots=True, eq=False)
class Ended:
    """What has ended since one sign-in began."""

    users: set[tuple[str, str]] = field(default_factory=set)  # (provider, name)
    providers: set[str] = field(default_factory=set)

    def concerns(self, principal: Principal, asked: str) -> bool:
        """Whether what it rests on has, whose provider is `asked`, or one that this has asked."""
        return (principal.provider, principal.name) in self.users or bool({asked, principal.provider} & self.providers)


class UnderWay:
    """The sign-ins of one process that have no answer yet."""

    def __init__(self) -> None:
        self._all: set[Ended] = set()

    @contextmanager
    def one(self) -> Iterator[Ended]:
        """As long as it lasts, it is told what ends."""
        ended = Ended()
        self._all.add(ended)
        try:
            yield ended
        finally:
            self._all.discard(ended)

    def end_user(self, provider: str, name: str) -> None:
        """A provider's user is no more, or not as it was."""
        for each in self._all:
            each.users.add((provider, name))

    def end_provider(self, name: str) -> None:
        """It is removed, or another one."""
        for each in self._all:
            each.providers.add(name)
