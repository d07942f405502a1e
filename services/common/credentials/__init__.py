"""What is kept of a password, in kinds: plug-ins of group `hopline.credential_kinds`, told by how it begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from services.common import plugins
from services.common.errors import SyntaxFault
from services.common.scram import Keys
from services.common.sealing import Sealing

GROUP = "credential_kinds"


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose password it is, and what opens secrets, where they may be read."""

    user: str
    sealing: Sealing | None = None

    @property
    def place(self) -> str:
        """To which a secret of the user is bound."""
        return f"password of user {self.user!r}"


class CredentialKind(ABC):
    """One kind."""

    begins: ClassVar[tuple[str, ...]]
    """What is kept of a password begins so."""
    lasting: ClassVar[bool] = False
    """Whether it stays when its user says the password; else a newer one is made of it then."""

    quick: ClassVar[bool] = False
    """Whether a check takes next to no time: a quick refusal would show which users have a hash of this kind."""

    @abstractmethod
    def make(self, password: str, whose: Whose) -> str:
        """What is kept. May take tens of milliseconds: call it in a thread."""

    @abstractmethod
    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        """Whether it is the password. May take as long. Raises CannotOpen where it cannot be read; ValueError."""

    def check(self, kept: str) -> None:
        """Raises SyntaxFault where it is none of this kind, as far as can be seen."""
        try:
            self.fits(kept, "", Whose(""))
        except ValueError as error:
            raise SyntaxFault(f"what is kept of the password is not as {self.begins[0]} wants it") from error

    def keys_of(self, kept: str, mechanism: str) -> Keys | None:
        """Of SCRAM, where they are in it."""
        return None

    def secret_of(self, kept: str, whose: Whose) -> str | None:
        """The password, where it can be read. Raises CannotOpen."""
        return None


def kind_named(name: str) -> CredentialKind:
    """Raises SyntaxFault where there is none."""
    if name not in plugins.names(GROUP):
        raise SyntaxFault(f"there is no kind of credentials {name!r}; there are {', '.join(plugins.names(GROUP))}")
    kind: CredentialKind = plugins.load(GROUP, name)
    return kind


def kind_of(kept: str) -> CredentialKind | None:
    """None for a hash of a kind that is not installed here."""
    for name in plugins.names(GROUP):
        kind: CredentialKind = plugins.load(GROUP, name)
        if kept.startswith(kind.begins):
            return kind
    return None


def fits(kept: str, password: str, whose: Whose) -> bool:
    """Whether it is the password; not where it cannot be read. Raises CannotOpen."""
    kind = kind_of(kept)
    try:
        return kind is not None and kind.fits(kept, password, whose)
    except ValueError:
        return False
