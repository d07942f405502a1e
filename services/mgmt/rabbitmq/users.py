"""Users in RabbitMQ's words: the names of its hashes, and which users are let in from this machine only."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from services.common import plugins
from services.common.credentials import GROUP, Whose, fits, kind_named, kind_of
from services.common.errors import SyntaxFault
from services.common.users import User, digest_of
from services.mgmt.rabbitmq.forms import UserForm
from services.mgmt.tree.house import House
from services.mgmt.users import KEPT_USUALLY, Kept

_HASHINGS: Final[Mapping[str, str]] = {
    "rabbit_password_hashing_sha256": "rabbitmq-sha256",
    "rabbit_password_hashing_sha512": "rabbitmq-sha512",
    "rabbit_password_hashing_md5": "rabbitmq-md5",
}
"""RabbitMQ's modules, and the plug-ins of `credential_kinds` that read what they made."""
_USUAL: Final = "rabbit_password_hashing_sha256"
_SEALED: Final = "recoverable"
"""What can be read by the stack that keeps it only."""
_LOOPBACK_ONLY: Final = frozenset({"guest"})
"""RabbitMQ's `loopback_users`, which is of its configuration and in no definitions."""


async def put_user(house: House, name: str, told: UserForm, *, there: bool | None = None) -> bool:
    """Whether there was none of that name. One that is there stays as it is where nothing of it is another.

    `there` is as Users says. Raises SyntaxFault where there is neither a password nor a hash that is understood here.
    """
    former = _former(house, name)
    said, kept = _password(told)
    if former and kept.hashed and former.tags == told.tags and _is_same(former, said):
        return False
    only = former.loopback_only if former else name in _LOOPBACK_ONLY
    await house.users.put(name, said, told.tags, loopback_only=only, kept=kept, there=there)
    await house.arrived("user", lambda: _former(house, name) != former)
    return former is None


def _is_same(former: User, said: str) -> bool:
    """Also where a better hash has taken its place: a user that is imported again keeps that, and its connections."""
    return former.password_hash == said or former.replaced == digest_of(said)


def _former(house: House, name: str) -> User | None:
    """As the tree has it: of thousands that are taken, none is looked for among all."""
    kept = house.mirror.tables["user"].get(name)
    return User.from_json(kept.raw) if kept else None


def _password(told: UserForm) -> tuple[str, Kept]:
    """Raises SyntaxFault."""
    if told.password and (said := told.password.get_secret_value()):
        return said, KEPT_USUALLY
    if told.password_hash and (said := told.password_hash.get_secret_value()):
        return _hash(said, told.hashing_algorithm or _USUAL)
    raise SyntaxFault("a user needs a password, or the hash of one: without, it cannot sign in here")


def _hash(said: str, algorithm: str) -> tuple[str, Kept]:
    kind = _HASHINGS.get(algorithm, algorithm)
    if kind not in plugins.names(GROUP):
        raise SyntaxFault(f"hashes of {algorithm} are not understood here; there are {', '.join(_HASHINGS)}")
    kept = kind_named(kind).begins[0] + said if algorithm in _HASHINGS else _unpacked(said)
    if algorithm in _HASHINGS and fits(kept, "", Whose("")):
        raise SyntaxFault("the password is empty: no user can sign in with an empty one, here as in RabbitMQ")
    return kept, Kept(kind, hashed=True)


def hash_of(user: User) -> tuple[str, str]:
    """What is kept of the password, and the name of the algorithm; empty where it is of no use elsewhere."""
    names = {kind: name for name, kind in _HASHINGS.items()}
    kind = kind_of(user.password_hash)
    name = next((each for each in plugins.names(GROUP) if plugins.load(GROUP, each) is kind), "")
    if kind is None or name == _SEALED:
        return "", _USUAL
    if name in names:
        return user.password_hash.removeprefix(kind.begins[0]), names[name]
    return base64.b64encode(user.password_hash.encode()).decode(), name


def _unpacked(said: str) -> str:
    """Hashes of kinds that RabbitMQ has not are base64 of what is kept: it reads nothing else in definitions."""
    try:
        return base64.b64decode(said, validate=True).decode()
    except ValueError:
        return said
