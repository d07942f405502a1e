"""Who wants no more to be read of a connection for now: uvicorn, or others whose turn it is."""

from __future__ import annotations

from uvicorn.protocols.http.flow_control import FlowControl


class Flow(FlowControl):
    """It is read when neither has paused it."""

    held = False
    """For others' turn."""

    def hold(self) -> None:
        """Until `release`, whatever uvicorn says meanwhile."""
        self.held = True
        if not self.read_paused:
            self._transport.pause_reading()

    def release(self) -> None:
        """What uvicorn has said holds."""
        self.held = False
        if not self.read_paused:
            self._transport.resume_reading()

    def pause_reading(self) -> None:
        if self.held:
            self.read_paused = True
        else:
            super().pause_reading()

    def resume_reading(self) -> None:
        if self.held:
            self.read_paused = False
        else:
            super().resume_reading()
