"""Remembers accepted passwords for a time, so that they need not be verified again; the passwords are not kept.

What is kept is a digest under a key that only this process has.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from services.common.authentication.principal import Principal
from services.common.clock import epoch_ms, monotonic

_KEY = secrets.token_bytes(32)


def digest_of(secret: str) -> bytes:
    """Stands for a password, or a token, in this process."""
    return hashlib.blake2b(secret.encode(errors="surrogatepass"), key=_KEY).digest()


@dataclass(frozen=True, slots=True)
class _Answer:
    digest: bytes
    principal: Principal
    until: float | None


class Answers:
    """The answers of one provider. Keys are what an answer rests on: when that changes, so does the key."""

    def __init__(self, most: int, seconds: float | None, clock: Callable[[], float] = monotonic) -> None:
        """An answer is good for `seconds`; None: as long as its key is."""
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()

    def find(self, key: Hashable, digest: bytes) -> Principal | None:
        """The user that was accepted with this secret, if that is remembered."""
        answer = self._answers.get(key)
        if answer is None or not secrets.compare_digest(answer.digest, digest):
            return None
        if answer.until is not None and self._clock() >= answer.until:
            del self._answers[key]
            return None
        expires = answer.principal.expires
        return answer.principal if expires is None or expires * 1000 > epoch_ms() else None

    def remember(self, key: Hashable, digest: bytes, principal: Principal) -> None:
        """Keeps one answer for each key; beyond `most`, the oldest is forgotten."""
        if not self._most:
            return
        until = None if self._seconds is None else self._clock() + self._seconds
        self._answers.pop(key, None)
        self._answers[key] = _Answer(digest, principal, until)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def forget(self, name: str, provider: str) -> None:
        """Forgets answers for a user that `provider` vouched for."""
        for key, answer in list(self._answers.items()):
            if (answer.principal.name, answer.principal.provider) == (name, provider):
                del self._answers[key]

    def __len__(self) -> int:
        return len(self._answers)
