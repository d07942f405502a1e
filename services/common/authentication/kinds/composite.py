"""Several providers, asked in order: the first that accepts a user vouches for it.

A provider that does not answer ends the sign-in: it might refuse a user that the next one accepts. It is passed over
only where the options say so.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Annotated, cast

from pydantic import Field

from services.common.authentication.claims import Claim, mechanisms_of
from services.common.authentication.principal import Principal
from services.common.authentication.provider import House, Options, Provider
from services.common.authentication.refusal import Refused
from services.common.errors import AccessRefused, Unavailable
from services.common.scram import Keys


class CompositeOptions(Options):
    providers: Annotated[tuple[str, ...], Field(min_length=1, max_length=16, description="their names, in order")]
    pass_over: Annotated[tuple[str, ...], Field(description="which of these are skipped while they do not answer")] = ()


class Composite(Provider):
    options_type = CompositeOptions

    def __init__(self, name: str, options: Options, house: House) -> None:
        super().__init__(name, options, house)
        self._options = cast("CompositeOptions", options)

    @property
    def _others(self) -> list[Provider]:
        """Raises Unavailable for one that does not exist, or is a composite itself."""
        others = [self.house.provider(name) for name in self._options.providers if name != self.name]
        if not others or any(isinstance(each, Composite) for each in others):
            raise Unavailable(
                f"authentication provider '{self.name}' wants other providers, and none that is a composite"
            )
        return others

    @property
    def mechanisms(self) -> frozenset[str]:  # type: ignore[override]  # they change with the others
        """Those that all others verify, as a user may be any one's; and those that one of them brings, on purpose."""
        others = self._others
        return frozenset.intersection(*(each.mechanisms for each in others)) | frozenset(self.brings)

    @property
    def brings(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(name for each in self._others for name in each.brings))

    async def verify(self, claim: Claim) -> Principal:
        refusal: AccessRefused = Refused("none of the providers knows this way of signing in")
        for other in self._others:
            if not _judges(other, claim):
                continue
            try:
                return await self._ask(other, claim)
            except AccessRefused as error:
                refusal = error
            except Unavailable:
                if other.name not in self._options.pass_over:
                    raise
        raise refusal

    async def _ask(self, other: Provider, claim: Claim) -> Principal:
        principal = await other.verify(claim)
        return replace(principal, tags=principal.tags | self.tags_of(principal.groups))

    def basis_of(self, claim: Claim) -> Hashable:
        return tuple((other, other.basis_of(claim)) for other in self._others)

    def keys_of(self, user: str, mechanism: str) -> Keys | None:
        found = (other.keys_of(user, mechanism) for other in self._others)
        return next((keys for keys in found if keys), None)


def _judges(provider: Provider, claim: Claim) -> bool:
    return not provider.mechanisms.isdisjoint(mechanisms_of(claim))
