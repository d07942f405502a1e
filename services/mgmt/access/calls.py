"""A call over gRPC, for both faces of mgmt: its user, whether that may do it, and what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from services.common.audit.acting import act_for_caller
from services.common.errors import BrokerError
from services.common.grpc_errors import abort
from services.mgmt.access.guard import OPERATOR, Guard
from services.mgmt.access.operations import Question


@asynccontextmanager
async def allowed(
    guard: Guard,
    question: Question,
    request: Any,  # noqa: ANN401 - each method's own
    context: grpc.aio.ServicerContext[Any, Any],
) -> AsyncIterator[None]:
    """Runs a call where it is allowed, for the user that the caller names; what goes wrong is a typed error."""
    act_for_caller(context.invocation_metadata())
    try:
        guard.check(OPERATOR, question(request))
        yield
    except BrokerError as error:
        await abort(context, error)
