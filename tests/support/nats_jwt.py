"""Credentials as operators of NATS give them out: signed permissions of users, in a file with their key."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import nkeys

_LIMITS = ("subs", "data", "payload", "imports", "exports", "conn", "leaf")
_JETSTREAM = ("mem_storage", "disk_storage", "streams", "consumer")  # not for the servers' own account
_FILE = """-----BEGIN NATS USER JWT-----
{token}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""


class _Key:
    def __init__(self, kind: int) -> None:
        self.seed: bytes = nkeys.encode_seed(os.urandom(32), kind)
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.public = self._pair.public_key.decode()

    def sign(self, subject: _Key, name: str, nats: dict[str, Any]) -> str:
        claims = {"iss": self.public, "sub": subject.public, "name": name, "iat": int(time.time()), "nats": nats}
        claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
        text = f"{_encoded({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encoded(claims)}"
        return f"{text}.{_base64(self._pair.sign(text.encode()))}"


class Operator:
    """Of servers with this in their `configuration`."""

    def __init__(self) -> None:
        self._operator, self._account = _Key(nkeys.PREFIX_BYTE_OPERATOR), _Key(nkeys.PREFIX_BYTE_ACCOUNT)
        system = _Key(nkeys.PREFIX_BYTE_ACCOUNT)
        own = {"type": "operator", "version": 2, "system_account": system.public}
        accounts = [
            f"{key.public}: {self._operator.sign(key, name, _account(limits))}"
            for key, name, limits in ((self._account, "hopline", _LIMITS + _JETSTREAM), (system, "system", _LIMITS))
        ]
        self.configuration = (
            f"operator: {self._operator.sign(self._operator, 'operator', own)}\n"
            f"resolver: MEMORY\nresolver_preload: {{ {', '.join(accounts)} }}\nsystem_account: {system.public}"
        )

    def user(self, path: Path) -> Path:
        """A file with the credentials of one."""
        key = _Key(nkeys.PREFIX_BYTE_USER)
        limits = {"subs": -1, "data": -1, "payload": -1}
        token = self._account.sign(key, "store", {"type": "user", "version": 2, **limits})
        path.write_text(_FILE.format(token=token, seed=key.seed.decode()))
        return path


def _account(limits: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "account", "version": 2, "limits": dict.fromkeys(limits, -1) | {"wildcards": True}}


def _encoded(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
