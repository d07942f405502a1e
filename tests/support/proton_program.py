"""qpid-proton, driven by lines of JSON: run by the Python that Debian's package python3-qpid-proton is for.

Each line is {"do": name, …}; the answer is what came of it, or {"error": condition}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from proton import (  # type: ignore[import-not-found]
    ConnectionException,
    Delivery,
    Described,
    Message,
    SSLDomain,
    Terminus,
    symbol,
    ulong,
)
from proton.reactor import (  # type: ignore[import-not-found]
    AtLeastOnce,
    AtMostOnce,
    Container,
    Copy,
    DurableSubscription,
    DynamicNodeProperties,
    ReceiverOption,
    Selector,
    SenderOption,
)
from proton.utils import BlockingConnection, LinkDetached, SendException  # type: ignore[import-not-found]

_STATES = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}

_TRANSACTIONAL = 0x34


class ToCoordinator(SenderOption):  # type: ignore[misc]
    """A sender of declare and discharge."""

    def apply(self, sender: Any) -> None:
        sender.target.type = Terminus.COORDINATOR


class Called(ReceiverOption):  # type: ignore[misc]
    """The address of a receiver's own end."""

    def __init__(self, address: str) -> None:
        self._address = address

    def apply(self, receiver: Any) -> None:
        receiver.target.address = self._address


class Program:
    """One connection and its links, by names."""

    def __init__(self) -> None:
        self._links: dict[str, Any] = {}
        self._transactions: dict[str, Any] = {}

    def connect(
        self, url: str, mechanisms: str = "PLAIN", trusted: str = "", container: str = "", **options: Any
    ) -> dict[str, Any]:
        if container:
            options["container"] = its = Container()
            its.container_id = container
        if trusted:
            options["ssl_domain"] = domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(trusted)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME, trusted)
        self._connection = BlockingConnection(url, timeout=20, allowed_mechs=mechanisms, **options)
        return {"container": self._connection.conn.remote_container}

    def sender(self, name: str, address: str, settled: bool = False) -> dict[str, Any]:
        options = AtMostOnce() if settled else AtLeastOnce()
        self._links[name] = self._connection.create_sender(address, name=name, options=options)
        return {}

    def send(self, name: str, **fields: Any) -> dict[str, Any]:
        if "times" in fields:
            fields["body"] = fields["body"] * fields.pop("times")
        try:
            delivery = self._links[name].send(Message(**fields))
        except SendException as refused:
            return {"outcome": _STATES[refused.state]}
        return {"outcome": _STATES.get(delivery.remote_state, "settled")}

    def receiver(
        self,
        name: str,
        address: str | None,
        credit: int = 0,
        settled: bool = False,
        target: str = "",
        selector: str = "",
        copies: bool = False,
        lifetime: str = "",
        durable: bool = False,
    ) -> dict[str, Any]:
        options = [AtMostOnce()] if settled else []
        options += [Selector(selector)] if selector else []
        options += [Copy()] if copies else []
        options += [DurableSubscription()] if durable else []
        policy = Described(symbol(f"amqp:{lifetime}:list"), [])
        options += [DynamicNodeProperties({symbol("lifetime-policy"): policy})] if lifetime else []
        link = self._connection.create_receiver(
            address,
            name=name,
            credit=credit or None,
            dynamic=address is None,
            options=[*options, Called(target)] if target else options,
        )
        self._links[name] = link
        return {"address": link.remote_source.address}

    def receive(self, name: str, seconds: float = 20) -> dict[str, Any]:
        message = self._links[name].receive(timeout=seconds)
        body = message.body
        return {
            "body": bytes(body).decode() if isinstance(body, bytes | memoryview) else body,
            "id": message.id,
            "correlation": message.correlation_id,
            "subject": message.subject,
            "properties": message.properties,
            "durable": message.durable,
            "annotations": {str(key): value for key, value in (message.annotations or {}).items()},
            "delivery_count": message.delivery_count,
            "first_acquirer": message.first_acquirer,
        }

    def settle(self, name: str, how: str) -> dict[str, Any]:
        getattr(self._links[name], how)()
        return {}

    def modify(
        self, name: str, failed: bool = False, undeliverable: bool = False, annotations: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The delivery that came first of those that are not settled."""
        fetcher = self._links[name].fetcher
        delivery = fetcher.unsettled[0]
        delivery.local.failed, delivery.local.undeliverable = failed, undeliverable
        if annotations:
            delivery.local.annotations = {symbol(key): value for key, value in annotations.items()}
        fetcher.settle(Delivery.MODIFIED)
        return {}

    def drain(self, name: str, credit: int) -> dict[str, Any]:
        link = self._links[name]
        link.link.drain(credit)
        self._connection.wait(lambda: link.link.credit == 0, timeout=20, msg="drain")
        return {"came": len(link.fetcher.incoming)}

    # -------------------------------------------------------------- transactions

    def coordinate(self) -> dict[str, Any]:
        """Attaches a link to the coordinator, on the session that all links are on."""
        self._control = self._connection.create_sender(None, name="control", options=ToCoordinator())
        return {}

    def _controlled(self, descriptor: str, value: list[Any]) -> Any:
        control = self._control.link
        delivery = control.send(Message(body=Described(symbol(descriptor), value)))
        self._connection.wait(lambda: delivery.settled, timeout=20, msg=descriptor)
        return delivery

    def declare(self, name: str) -> dict[str, Any]:
        delivery = self._controlled("amqp:declare:list", [None])
        self._transactions[name] = delivery.remote.data[0]
        return {}

    def discharge(self, name: str, fail: bool = False) -> dict[str, Any]:
        delivery = self._controlled("amqp:discharge:list", [self._transactions.pop(name), fail])
        condition = delivery.remote.condition
        return {"outcome": _STATES.get(delivery.remote_state), "condition": condition and condition.name}

    def post(self, transaction: str, name: str, body: str) -> dict[str, Any]:
        """Sends a message as part of a transaction; gives its provisional outcome, by its number in the table."""
        delivery = self._links[name].link.send(Message(body=body.encode(), inferred=True))
        delivery.local.data = [self._transactions[transaction]]
        delivery.update(_TRANSACTIONAL)
        self._connection.wait(lambda: delivery.settled, timeout=20, msg="post")
        txn_id, outcome = delivery.remote.data
        return {"mine": bytes(txn_id) == bytes(self._transactions[transaction]), "outcome": int(outcome.descriptor)}

    def retire(self, transaction: str, name: str) -> dict[str, Any]:
        """Accepts the message that was received first, as part of a transaction."""
        delivery = self._links[name].fetcher.unsettled.popleft()
        delivery.local.data = [self._transactions[transaction], Described(ulong(Delivery.ACCEPTED), [])]
        delivery.update(_TRANSACTIONAL)
        delivery.settle()
        return {}

    def end_control(self) -> dict[str, Any]:
        self._control.close()
        return {}

    # -------------------------------------------------------------- the end

    def end(self, name: str) -> dict[str, Any]:
        self._links.pop(name).close()
        return {}

    def close(self) -> dict[str, Any]:
        self._connection.close()
        return {}


def _do(program: Program, command: dict[str, Any]) -> dict[str, Any]:
    try:
        result: dict[str, Any] = getattr(program, command.pop("do"))(**command)
    except LinkDetached as detached:
        return {"error": detached.condition}
    except ConnectionException as closed:
        return {"error": f"{type(closed).__name__}: {closed}"}
    return result


def main() -> None:
    program = Program()
    for line in sys.stdin:
        print(json.dumps(_do(program, json.loads(line))), flush=True)  # noqa: T201 - that is how it answers


main()
