"""Which server of a cluster is tried first.

A server that stands still accepts connections and says nothing. Chosen by chance it would be met again and again, and
each time costs seconds; in turns the attempt after it goes to another one.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

from services.store.providers.jetstream_url import Url


class Turns:
    """The servers of `url`, each in its turn the first; which begins is chance, so that processes spread over them."""

    def __init__(self, url: Url) -> None:
        self._url = url
        self._servers = deque(random.sample(url.servers, len(url.servers)))

    def next(self) -> Url:
        """The URL for the next attempt to connect: its servers in the order in which to try them."""
        self._servers.rotate(-1)
        return replace(self._url, servers=tuple(self._servers))
