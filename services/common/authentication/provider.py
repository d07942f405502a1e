"""An authentication provider verifies claims. Kinds are plug-ins of group `hopline.authentication_providers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field

from services.common.authentication.answers import Answers
from services.common.authentication.fair_slots import FairSlots

if TYPE_CHECKING:
    from services.common.authentication.claims import Claim
    from services.common.authentication.known_users import KnownUsers
    from services.common.authentication.principal import Principal
    from services.common.config import Settings
    from services.common.scram import Keys
    from services.common.sealing import Sealing

# Claims that are verified at a time, and how many of these for addresses from which a login failed lately: most wait
# for another server, which has a limit of its own.
_ASKED, _DOUBTFUL_ASKED = 64, 32


class Options(BaseModel):
    """What every kind may be told; each has more of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tags: Annotated[
        Mapping[str, tuple[str, ...]],
        Field(description="tag → groups whose members have that tag, which HTTP asks for, for example"),
    ] = {}
    cache_seconds: Annotated[
        float,
        Field(
            ge=0, le=86_400, description="for which an accepted client is remembered; 0: each sign-in is judged anew"
        ),
    ] = 60.0
    cache_size: Annotated[int, Field(ge=0, le=100_000, description="of clients that are remembered at most")] = 1000


class House(Protocol):
    """What providers get from the process that has them."""

    settings: Settings
    sealing: Sealing

    @property
    def known(self) -> KnownUsers:
        """The users on record, as they are now."""

    def provider(self, name: str) -> Provider:
        """Raises Unavailable when there is no such provider."""

    def end_user(self, provider: str, name: str, what: str) -> None:
        """A provider's user was deleted or changed: ends its connections and sign-ins."""


class Provider(ABC):
    """A configured provider; replaced by a new one when its options change."""

    options_type: ClassVar[type[Options]] = Options
    mechanisms: frozenset[str] = frozenset()
    """The mechanisms whose claims it can verify."""
    brings: tuple[str, ...] = ()
    """Those of them that are offered even if the settings do not name them: without them it would be of no use."""

    trouble: str = ""
    """A problem that an operator must solve, and how; empty where there is none."""

    def __init__(self, name: str, options: Options, house: House) -> None:
        self.name = name
        self.options = options
        self.house = house
        self.slots = FairSlots(_ASKED, _DOUBTFUL_ASKED)
        seconds = options.cache_seconds
        self.answers = Answers(options.cache_size if seconds else 0, seconds)

    @abstractmethod
    async def verify(self, claim: Claim) -> Principal:
        """The user. Raises Refused, and Unavailable where it cannot be verified now: then no client is let in."""

    async def groups_now(self, principal: Principal) -> frozenset[str] | None:
        """The present groups of a user with `again`; None where the user no longer exists. Raises Unavailable."""
        return principal.groups

    def basis_of(self, claim: Claim) -> Hashable:
        """What an answer to the claim rests on: its key in `answers`."""
        return claim.user

    def keys_of(self, user: str, mechanism: str) -> Keys | None:  # noqa: ARG002 - most have none
        """SCRAM keys; None for a user without."""
        return None

    def tags_of(self, groups: frozenset[str]) -> frozenset[str]:
        """The tags that the options give to these groups."""
        return frozenset(tag for tag, wanted in self.options.tags.items() if not groups.isdisjoint(wanted))

    async def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends it; it is not asked again."""
