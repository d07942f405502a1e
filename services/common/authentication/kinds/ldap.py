"""Users of an LDAP directory: a client that can bind as a user has its password. The directory names groups too.

A user's distinguished name is either made from a template (`user_dn`), or searched for (`search_base`), as `bind_dn` or
anonymously; exactly one entry must be found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self, TypeVar, cast

import structlog
from pydantic import Field, SecretStr, field_validator, model_validator

from services.common.authentication.asking import SILENT, Asking
from services.common.authentication.claims import PASSWORDS, Claim, Credentials
from services.common.authentication.kinds.ldap_directory import Away, Directory, Found
from services.common.authentication.principal import Principal
from services.common.authentication.provider import House, Options, Provider
from services.common.authentication.refusal import Refused
from services.common.errors import Unavailable
from services.common.few_lines import FewLines

log = structlog.get_logger()

_T = TypeVar("_T")
_THREADS = 8
_USER = "{user}"
_DN = "{dn}"


class LdapOptions(Options):
    url: Annotated[str, Field(pattern=r"^ldaps?://[^/\s]+/?$", description="ldap://host:389, or ldaps://host:636")]
    start_tls: Annotated[bool, Field(description="whether ldap:// goes on with TLS")] = False
    unencrypted: Annotated[bool, Field(description="whether passwords may go there without TLS")] = False
    authorities: Annotated[
        str, Field(description="PEM file of the authorities that sign its certificate; empty: the system's")
    ] = ""
    user_dn: Annotated[
        str, Field(description="of a user, as uid={user},ou=people,dc=example,dc=org; empty: it is searched for")
    ] = ""
    search_base: Annotated[str, Field(description="below which users are searched for")] = ""
    search_filter: Annotated[str, Field(description="that finds the entry of a user")] = "(uid={user})"
    bind_dn: Annotated[str, Field(description="name to bind with for searches; empty: anonymous")] = ""
    bind_password: Annotated[SecretStr, Field(description="that goes with bind_dn")] = SecretStr("")
    bind_password_file: Annotated[str, Field(description="file with it, in place of bind_password")] = ""
    group_base: Annotated[
        str, Field(description="below which a user's groups are searched for; empty: they are not")
    ] = ""
    group_filter: Annotated[str, Field(description="that finds groups of a user, by {dn} or the name {user}")] = (
        "(|(member={dn})(uniqueMember={dn})(memberUid={user}))"
    )
    group_attribute: Annotated[str, Field(description="of a group, that is its name")] = "cn"
    member_of: Annotated[str, Field(description="attribute of a user that names groups, such as memberOf")] = ""
    name: Annotated[
        Literal["said", "dn"],
        Field(description="a user's name: what it says, as the directory spells it, or its distinguished name"),
    ] = "said"
    timeout: Annotated[float, Field(gt=0, le=60, description="seconds to wait for an answer")] = 5.0

    @field_validator("user_dn", "search_filter")
    @classmethod
    def _has_user(cls, value: str) -> str:
        if value and _USER not in value:
            raise ValueError(f"{_USER} is wanted, where the name goes")
        return value

    @model_validator(mode="after")
    def _finds_users(self) -> Self:
        if bool(self.user_dn) == bool(self.search_base):
            raise ValueError("either user_dn or search_base is wanted")
        if not (self.unencrypted or self.start_tls or self.url.startswith("ldaps:")):
            raise ValueError("ldaps://, start_tls, or unencrypted = true is wanted: passwords go there")
        return self


class Ldap(Provider):
    options_type = LdapOptions
    mechanisms = PASSWORDS

    def __init__(self, name: str, options: Options, house: House) -> None:
        super().__init__(name, options, house)
        self._options = cast("LdapOptions", options)
        self._directory = Directory(self._options)
        self._few = FewLines(most=1)
        self._asking = Asking(name, _THREADS, self._options.timeout)

    async def verify(self, claim: Claim) -> Principal:
        if not isinstance(claim, Credentials) or not claim.user or not claim.password:
            raise Refused("a name and a password are wanted")  # a directory takes an empty one for anonymous
        found = await self._ask(lambda: self._directory.find(claim.user, claim.password))
        if found is None:
            raise Refused("the directory does not know such a user, or another password")
        return self._principal(found)

    def _principal(self, found: Found) -> Principal:
        return Principal(found.name, self.name, found.groups, self.tags_of(found.groups), again=found.again)

    async def groups_now(self, principal: Principal) -> frozenset[str] | None:
        return await self._ask(lambda: self._directory.groups_now(principal.name, principal.groups))

    async def _ask(self, question: Callable[[], _T]) -> _T:
        try:
            return await self._asking.ask(question)
        except Away as error:
            self._few.say(log.warning, "a directory does not answer", provider=self.name, reason=str(error), do=SILENT)
            raise Unavailable(f"authentication provider '{self.name}' does not answer") from None

    async def close(self) -> None:
        self._asking.close()
