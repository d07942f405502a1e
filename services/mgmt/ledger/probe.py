"""Whether NATS is there at this moment: that it is not, the filer notices some seconds later."""

from __future__ import annotations

from services.common.bus.nats_link import Away, NatsLink


async def bus_trouble(address: str) -> str:
    """Why processes cannot tell the record anything now; "" where they can, or `address` is none. Takes two seconds at
    most.
    """
    if not address:
        return ""
    try:
        link = await NatsLink.connect(address, "mgmt look-up")
    except Away as failure:
        return away(failure)
    await link.close()
    return ""


def away(failure: Away) -> str:
    """It, for an operator."""
    return f"NATS is away ({failure}); services keep what they have to tell, see that it runs"
