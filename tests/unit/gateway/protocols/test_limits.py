from __future__ import annotations

from services.common.config import Settings
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.limits import limits_of


def test_limits_are_the_settings_of_their_names() -> None:
    """Each engine has those that its protocol knows; memory may bear less than the largest message that is set."""
    settings = Settings(frame_max=8192, channel_max=5, heartbeat=7, message_compression="assumed", product="x")
    assert limits_of(Amqp09Limits, settings, 1000) == Amqp09Limits(1000, "x", "", 8192, 5, 7, "assumed")
    assert limits_of(Amqp10Limits, settings, 1000) == Amqp10Limits(1000, "x", "", 8192, 5, 7)


def test_what_is_usual_is_what_settings_have() -> None:
    """An engine that is made without any is as a gateway makes it."""
    for kind in (Amqp09Limits, Amqp10Limits):
        assert limits_of(kind, Settings(), kind().max_message_size) == kind()
