"""Bearer tokens that an issuer has signed (JWT, RFC 7519): with XOAUTH2, or in place of a password, as with RabbitMQ.

A token is verified here, by the issuer's public keys; the token itself names the user, its groups, and its expiry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Annotated, Any, Self, cast

import jwt
from pydantic import Field, field_validator, model_validator

from services.common.authentication.asking import Asking
from services.common.authentication.claims import PASSWORDS, Claim, Credentials, Token
from services.common.authentication.kinds.jwks import IssuersKeys, is_trusted
from services.common.authentication.principal import Principal
from services.common.authentication.provider import House, Options, Provider
from services.common.authentication.refusal import Refused

_THREADS = 2
_LONGEST = 64 << 10  # characters of a token
_LONGEST_NAME = 255  # bytes, as for a user's name
# Only algorithms with a public key: with a shared one, a verifier could sign.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

_Names = tuple[Annotated[str, Field(min_length=1)], ...]


class OAuth2Options(Options):
    issuer: Annotated[str, Field(min_length=1, description="of tokens, as their claim iss says it")]
    audience: Annotated[_Names, Field(min_length=1, description="one of which the claim aud has to name")]
    jwks_url: Annotated[
        str, Field(description="of the issuer's keys; empty: as it says at /.well-known/openid-configuration")
    ] = ""
    authorities: Annotated[
        str, Field(description="PEM file of the authorities that sign its certificate; empty: the system's")
    ] = ""
    insecure: Annotated[bool, Field(description="whether keys may come over http:// from other machines")] = False
    algorithms: Annotated[_Names, Field(min_length=1, description="of signatures that are accepted")] = (
        "RS256",
        "ES256",
    )
    user_claims: Annotated[_Names, Field(min_length=1, description="the first that a token has is the user")] = (
        "sub",
        "client_id",
    )
    groups_claims: Annotated[_Names, Field(description="that name groups; a.b is b in a")] = ("groups",)
    scope_claims: Annotated[_Names, Field(description="that name scopes, each of which is a group too")] = (
        "scope",
        "scp",
    )
    required_scopes: Annotated[_Names, Field(description="all of which a token has to have")] = ()
    leeway: Annotated[float, Field(ge=0, le=300, description="seconds that the issuer's clock may differ")] = 10.0
    keys_seconds: Annotated[float, Field(ge=1, le=86_400, description="for which the issuer's keys are kept")] = 600.0
    timeout: Annotated[float, Field(gt=0, le=60, description="seconds to wait for the issuer's answer")] = 5.0

    @field_validator("algorithms")
    @classmethod
    def _public(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in value if name not in _ALGORITHMS]:
            raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(_ALGORITHMS)}")
        return value

    @model_validator(mode="after")
    def _is_secure(self) -> Self:
        if not is_trusted(self.keys_at, insecure=self.insecure):
            raise ValueError("jwks_url, or else issuer, is a URL with https://, of this machine, or insecure = true")
        return self

    @property
    def keys_at(self) -> str:
        """The URL of the keys, or of the document that names it."""
        return self.jwks_url or f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"


class OAuth2(Provider):
    options_type = OAuth2Options
    mechanisms = PASSWORDS | {"XOAUTH2"}
    brings = ("XOAUTH2",)

    def __init__(self, name: str, options: Options, house: House) -> None:
        super().__init__(name, options, house)
        self._options = cast("OAuth2Options", options)
        self._asking = Asking(name, _THREADS, self._options.timeout)
        self._keys = IssuersKeys(name, self._options, self._asking)

    def basis_of(self, claim: Claim) -> Hashable:
        return claim.user, self._keys.version  # tokens of a withdrawn key are forgotten with it

    async def verify(self, claim: Claim) -> Principal:
        if not isinstance(claim, Token | Credentials) or len(claim.secret) > _LONGEST:
            raise Refused("a token is wanted")
        try:
            header = jwt.get_unverified_header(claim.secret)
        except jwt.PyJWTError:
            raise Refused("this is no token (JWT)") from None
        key = await self._keys.find(str(header.get("kid", "")))
        if key is None:
            raise Refused("the token is signed with a key that the issuer does not have")
        return self._principal(self._decoded(claim.secret, key))

    def _decoded(self, token: str, key: jwt.PyJWK) -> Mapping[str, Any]:
        options = self._options
        try:
            said: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(options.algorithms),
                audience=list(options.audience),
                issuer=options.issuer,
                leeway=options.leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise Refused(f"the token is refused: {type(error).__name__}") from None
        return said

    def _principal(self, said: Mapping[str, Any]) -> Principal:
        options = self._options
        names = (str(said[claim]) for claim in options.user_claims if said.get(claim))
        name = next(names, "")
        if not 0 < len(name.encode(errors="replace")) <= _LONGEST_NAME:
            raise Refused(f"the token names no user: it has none of {', '.join(options.user_claims)}")
        scopes = frozenset(word for claim in options.scope_claims for word in _words(_at(said, claim)))
        if missing := [scope for scope in options.required_scopes if scope not in scopes]:
            raise Refused(f"the token lacks the scope {', '.join(missing)}")
        groups = scopes | {group for claim in options.groups_claims for group in _listed(_at(said, claim))}
        expires = float(said["exp"]) + options.leeway
        return Principal(name, self.name, frozenset(groups), self.tags_of(frozenset(groups)), expires)

    async def close(self) -> None:
        self._asking.close()


def _at(said: Mapping[str, Any], claim: str) -> object:
    """The value of a claim; `a.b` is b in a, unless a claim has that whole name: names are often URLs."""
    if claim in said:
        return said[claim]
    found: object = said
    for part in claim.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _words(value: object) -> list[str]:
    return [word for each in _listed(value) for word in each.split()]
