"""A provider's description: its kind and options, from an operator's record, the settings' file, or just its name.

In a record secrets are sealed; on the way out they are masked.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from services.common import plugins
from services.common.authentication.provider import Options, Provider
from services.common.errors import SyntaxFault
from services.common.invalid import words
from services.common.runtime import CannotStart
from services.common.sealing import Sealing

RECORD_KIND: Final = "authentication_provider"
INTERNAL: Final = "internal"
GROUP: Final = "authentication_providers"
MASK: Final = "**********"
_NAMES = 256  # of those that were asked for: each client that signs in asks for one


class Described(BaseModel):
    """One provider. The record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Annotated[str, Field(min_length=1, max_length=64)]
    options: Mapping[str, Any] = {}
    sealed: Mapping[str, str] = {}  # the secret ones of the options

    def to_json(self) -> bytes:
        """The record's value."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Described:
        """The provider in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)

    def opened(self, name: str, sealing: Sealing) -> Described:
        """The description with its secrets. Raises CannotOpen."""
        secret = {option: sealing.open(sealed, place_of(name, option)) for option, sealed in self.sealed.items()}
        return Described(type=self.type, options={**self.options, **secret})

    def closed(self, name: str, sealing: Sealing, former: Described | None = None) -> Described:
        """The description with its secrets sealed; masked ones stay as in `former`. Raises SyntaxFault, CannotOpen."""
        secret = secrets_of(self.type)
        kept = former.sealed if former and former.type == self.type else {}
        sealed = {}
        for option in self.options.keys() & secret:
            value = self.options[option]
            if not isinstance(value, str):
                raise SyntaxFault(f"{option}: a text is wanted")
            masked = value == MASK and option in kept
            sealed[option] = kept[option] if masked else sealing.seal(value, place_of(name, option))
        options = {option: value for option, value in self.options.items() if option not in secret}
        return Described(type=self.type, options=options, sealed=sealed)

    def masked(self) -> Described:
        """The description to show: secrets are masked."""
        return Described(type=self.type, options={**self.options, **dict.fromkeys(self.sealed, MASK)})

    def without(self, secret: frozenset[str]) -> Described:
        """As `masked`, for a description whose secrets are among its options."""
        masked = {name: MASK if name in secret else value for name, value in self.options.items()}
        return Described(type=self.type, options=masked)


def place_of(name: str, option: str) -> str:
    """The place to which a sealed option is bound."""
    return f"authentication provider {name!r}, {option}"


def kind_of(described: Described) -> type[Provider]:
    """The kind's class. Raises SyntaxFault where it is not installed."""
    if described.type not in plugins.names(GROUP):
        there = ", ".join(plugins.names(GROUP))
        raise SyntaxFault(f"there is no kind of authentication provider {described.type!r}; there are {there}")
    kind: type[Provider] = plugins.load(GROUP, described.type)
    return kind


@lru_cache(_NAMES)
def without_options(name: str) -> Described | None:
    """The provider that is there without a description, if `name` is a kind that needs no options."""
    try:
        options_of(described := Described(type=name))
    except (SyntaxFault, ValidationError):
        return None
    return described


def secrets_of(kind: str) -> frozenset[str]:
    """Names of the options that are secret. Raises SyntaxFault."""
    fields = kind_of(Described(type=kind)).options_type.model_fields
    return frozenset(name for name, field in fields.items() if field.annotation in (SecretStr, SecretStr | None))


def options_of(described: Described) -> Options:
    """The options as their kind reads them. Raises SyntaxFault for the first wrong one, without its value."""
    try:
        return kind_of(described).options_type.model_validate(dict(described.options))
    except ValidationError as error:
        [fault, *_] = error.errors(include_input=False, include_url=False)
        where = ".".join(map(str, fault["loc"])) or described.type
        raise SyntaxFault(f"{where}: {words(fault)}") from None


def read_file(path: Path | None) -> Mapping[str, Described]:
    """The providers of the settings' file, by name: TOML, a table for each. Raises CannotStart."""
    if path is None:
        return {}
    try:
        tables = tomllib.loads(path.read_text())
        found = {name: _in_file(table) for name, table in tables.items()}
        for described in found.values():
            options_of(described)
    except (OSError, ValueError, SyntaxFault) as error:
        raise CannotStart(f"HOPLINE_AUTHENTICATION_PROVIDERS_FILE={path}: {error}") from error
    return found


def _in_file(table: object) -> Described:
    if not isinstance(table, dict) or not isinstance(table.get("type"), str):
        raise SyntaxFault('a table for each provider is wanted, such as [staff] with type = "ldap"')
    return Described(type=table["type"], options={name: value for name, value in table.items() if name != "type"})
