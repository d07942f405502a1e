"""EXTERNAL: accepts the user that a client's certificate names, verified by TLS. The user need not be on record."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field

from services.common.authentication.claims import Certified, Claim
from services.common.authentication.principal import Principal
from services.common.authentication.provider import Options, Provider
from services.common.authentication.refusal import Refused


class ExternalOptions(Options):
    groups: Annotated[tuple[str, ...], Field(description="that all clients are in")] = ()


class External(Provider):
    options_type = ExternalOptions
    mechanisms = frozenset({"EXTERNAL"})
    brings = ("EXTERNAL",)

    async def verify(self, claim: Claim) -> Principal:
        if not isinstance(claim, Certified) or not claim.user:
            raise Refused("a client certificate that names its user is needed")
        groups = frozenset(cast("ExternalOptions", self.options).groups)
        return Principal(claim.user, self.name, groups, self.tags_of(groups))
