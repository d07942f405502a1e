"""The message format of AMQP 0-9-1, 0-9 and 0-8: the properties of class basic, as bytes."""

from services.common.message.amqp_0_9.format import FORMAT, NAME, Amqp09Format, compose

__all__ = ["FORMAT", "NAME", "Amqp09Format", "compose"]
