"""ANONYMOUS: accepts every client without proof. For ports that only trusted clients can reach."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field

from services.common.authentication.claims import Anonymous as Somebody
from services.common.authentication.claims import Claim
from services.common.authentication.principal import Principal
from services.common.authentication.provider import Options, Provider
from services.common.authentication.refusal import Refused


class AnonymousOptions(Options):
    user: Annotated[str, Field(min_length=1, max_length=255, description="the name that all clients get")] = "ANONYMOUS"
    groups: Annotated[tuple[str, ...], Field(description="that all clients are in")] = ()


class Anonymous(Provider):
    options_type = AnonymousOptions
    mechanisms = frozenset({"ANONYMOUS"})
    brings = ("ANONYMOUS",)

    async def verify(self, claim: Claim) -> Principal:
        if not isinstance(claim, Somebody):
            raise Refused("only clients without a name are accepted here")
        options = cast("AnonymousOptions", self.options)
        groups = frozenset(options.groups)
        return Principal(options.user, self.name, groups, self.tags_of(groups))
