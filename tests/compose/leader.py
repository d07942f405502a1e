"""Run in a container of a store in JetStream: says the name of the server that leads its stream."""

from __future__ import annotations

import asyncio
import os
import sys

from nats.aio.client import Client

from services.common import secret
from services.common.config import Settings
from services.store.providers.jetstream_url import parse


async def main() -> None:
    secret.use_that_of(Settings())
    url, client = parse(os.environ["HOPLINE_STORE_URL"]), Client()
    await client.connect(**url.arguments())
    told = await client.jetstream().stream_info(url.stream)
    sys.stdout.write(told.cluster.leader if told.cluster and told.cluster.leader else "")
    await client.close()


asyncio.run(main())
