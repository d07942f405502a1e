"""SCRAM keys for names without a user: the same each time, so that a client cannot tell them from a user's keys."""

from __future__ import annotations

import hashlib
import hmac

from services.common.scram import ITERATIONS, SALT_BYTES, Keys


def keys_of_nobody(secret: bytes, user: str, mechanism: str) -> Keys:
    """The keys for that name. No password fits them, and without `secret` they cannot be told from a user's."""
    seed = hmac.digest(secret, f"{mechanism}\0{user}".encode(errors="surrogatepass"), "sha256")
    size = hashlib.new(mechanism.removeprefix("SCRAM-").replace("-", "")).digest_size
    drawn = hashlib.shake_256(seed).digest(SALT_BYTES + 2 * size)
    salt, keys = drawn[:SALT_BYTES], drawn[SALT_BYTES:]
    return Keys(salt=salt, iterations=ITERATIONS, stored_key=keys[:size], server_key=keys[size:])
