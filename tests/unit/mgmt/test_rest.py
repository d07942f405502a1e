from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from services.common.authentication.attempts import OF_USER_THERE
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.common.errors import SyntaxFault
from services.common.question import Sought
from services.common.trace import Trace, nothing
from services.common.users import User
from services.mgmt.service import NO_LEDGER, Service
from services.mgmt.users import Users
from services.rpc.ledger_pb2 import LedgerBatch
from tests.support.fake_store import FakeStore
from tests.support.ledger_files import MS, LedgerFiles, uid
from tests.support.rest import Get, asking


@pytest.fixture
def ledger(settings: Settings) -> LedgerFiles:
    """One message, known by some ids."""
    ledger = LedgerFiles(settings.data / "ledger")
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), at=MS, queue="q")
    for name in ("order-1", "a/b?c#d%2F", "..", "\N{SNOWMAN}"):
        ledger.named(name, uid(1))
    ledger.file()
    return ledger


@pytest.mark.parametrize("asked", ["order-1", "a/b?c#d%2F", "\N{SNOWMAN}", str(uid(1))])
async def test_trace(get: Get, ledger: LedgerFiles, asked: str) -> None:
    """GET /api/trace/<id> answers with the message's way, with any characters in the id."""
    status, body, _ = await get(f"/api/trace/{quote(asked, safe='')}")
    assert status == 200
    trace = Trace.model_validate(body)
    assert trace.id == asked
    assert [step.stage for step in trace.journeys[0].messages[0].steps] == ["received", "routed"]


@pytest.mark.parametrize("query", ["queue=q", "queue=*&key=&journeys=1", "queue=q&since=2026-08-21T12:00&until=0s"])
async def test_search(get: Get, ledger: LedgerFiles, query: str) -> None:
    """GET /api/trace answers with the ways of messages that have in common what the query says."""
    status, body, _ = await get(f"/api/trace?{query}")
    assert status == 200
    [journey] = Trace.model_validate(body).journeys
    assert (journey.match.uid, journey.match.kind) == (uid(1), "found")
    assert "order-1" in {name.id for name in journey.messages[0].names}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("fate=eaten", 400),
        ("since=soon&queue=q", 400),
        ("queue=q&journeys=0", 400),
        ("queue=none", 404),
        ("queue=q&fates=expired", 400),
        ("queue=q&since=5m&until=10m", 400),
    ],
)
async def test_bad_search(get: Get, ledger: LedgerFiles, query: str, status: int) -> None:
    """What is wrong with a query is said; what nothing fits is not found."""
    answer, body, _ = await get(f"/api/trace?{query}")
    assert (answer, bool(body["reason"])) == (status, True)


@pytest.mark.parametrize("asked", ["none", "'; DROP TABLE ids; --", "*", "-1", "%00", "..%2F..%2Fetc%2Fpasswd"])
async def test_nothing_on_record(get: Get, ledger: LedgerFiles, asked: str) -> None:
    """An id that no message has is not found."""
    status, body, _ = await get(f"/api/trace/{quote(asked, safe='%')}")
    assert (status, body["error"]) == (404, "NotFound")


@pytest.mark.parametrize("query", ["journeys=0", "journeys=101", "journeys=x", "everything=maybe"])
async def test_bad_questions(get: Get, ledger: LedgerFiles, query: str) -> None:
    """A parameter that is out of range is named."""
    status, body, _ = await get(f"/api/trace/order-1?{query}")
    assert (status, body["error"]) == (400, "SyntaxFault")
    assert query.partition("=")[0] in body["reason"]


async def test_huge_id(get: Get, ledger: LedgerFiles) -> None:
    """An id longer than any is refused."""
    status, body, _ = await get(f"/api/trace/{'x' * 2000}")
    assert (status, body["error"]) == (400, "SyntaxFault")


@pytest.mark.parametrize(
    "user", [None, "guest:wrong", "nobody:guest", "guest", "", b"%%%", base64.b64encode(b"\xff:\xff"), "gäst:gäst"]
)
async def test_who_asks(get: Get, ledger: LedgerFiles, user: str | bytes | None) -> None:
    """Without a known user and the password there is no answer but which kind of login is wanted."""
    status, body, headers = await get("/api/trace/order-1", user)
    assert (status, body["error"]) == (401, "HTTPError")
    assert headers["WWW-Authenticate"] == 'Basic realm="Hopline"'


async def test_guesses_do_not_reach_the_store(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """For an address with too many wrong passwords the store is not asked for the users."""
    asked = 0
    everybody = Users.all

    async def count(users: Users) -> list[User]:
        nonlocal asked
        asked += 1
        return await everybody(users)

    monkeypatch.setattr(Users, "all", count)
    answers = [(await get("/api/trace/order-1", f"guest:{number}"))[0] for number in range(2 * OF_USER_THERE.burst)]
    assert set(answers) == {401}
    assert asked <= OF_USER_THERE.burst + 1


async def test_who_may(get: Get, client: MgmtClient, ledger: LedgerFiles) -> None:
    """Administrators and those who monitor may see what passes; others may not, and are told what it was."""
    for name, tags in (("äva", ["monitoring"]), ("bob", ["administrator"]), ("carl", ["other"]), ("dora", [])):
        await client.put_user(name, "sécret:1", tags)
    assert (await get("/api/trace/order-1", "äva:sécret:1"))[0] == 200
    assert (await get("/api/trace/order-1", "bob:sécret:1"))[0] == 200
    for name in ("carl", "dora"):
        status, body, _ = await get("/api/trace/order-1", f"{name}:sécret:1")
        assert (status, body["error"]) == (403, "AccessRefused")
        assert body["reason"] == f"access to management refused for user '{name}'"


async def test_no_such_route(get: Get) -> None:
    """Errors of HTTP itself are JSON too."""
    status, body, _ = await get("/api/nothing")
    assert (status, body["error"]) == (404, "HTTPError")


async def test_described(get: Get) -> None:
    """The interface describes itself: answers, errors, and that a login is wanted."""
    _, document, _ = await get("/openapi.json", None)
    operation = document["paths"]["/api/trace/{id}"]["get"]
    assert set(operation["responses"]) >= {"200", "400", "401", "403", "404", "503"}
    assert operation["security"] == [{"user": []}]
    assert document["components"]["securitySchemes"]["user"] == {"type": "http", "scheme": "basic"}
    assert document["components"]["schemas"]["Step"]["properties"]["wait_us"]["description"]


async def test_why_nothing_is_on_record(get: Get, client: MgmtClient, ledger: LedgerFiles, mgmt: Service) -> None:
    """While nothing is filed look-ups and health say why; the stack is no worse for that."""
    mgmt._filer._trouble = "NATS has no room"
    status, body, _ = await get("/api/trace/none")
    why = "nothing is on record of 'none'; the record is not filed at the moment: NATS has no room"
    assert (status, body["reason"]) == (404, why)
    assert nothing("none", await client.trace("none", 1)) == why
    _, body, _ = await get("/healthz")
    assert body["notes"] == {"ledger": "not filed: NATS has no room"}
    assert "ledger" not in body["services"]


async def test_a_gateway_that_died_just_now(get: Get, ledger: LedgerFiles, mgmt: Service) -> None:
    """One that went without having told the record that it ends may have had what nothing is on record of."""
    ends = LedgerBatch(service="gateway", instance="gateway-3", first_row=1, last=True)
    for batch in (LedgerBatch(service="gateway", instance="gateway-2", first_row=1), ends):
        mgmt._filer._instances.heard(batch, 0.0, 1.0)
    mgmt._roll.update("gateway", {"gateway-1": "", "gateway-2": "", "gateway-3": ""})
    mgmt._roll.update("gateway", {"gateway-4": ""})
    _, body, _ = await get("/api/trace/none")
    assert body["reason"].endswith("; it may be what is missing of gateway-2, which died just now")


async def test_without_a_ledger(settings: Settings, store: FakeStore, ledger: LedgerFiles) -> None:
    """Where messages are not put on record any more, look-ups say so; that one waits is not claimed."""
    ledger.stage("enqueued", uid(1), at=2 * MS, queue="q", partition=1, epoch=1)
    ledger.file()
    service = Service(settings.model_copy(update={"ledger": False}))
    await service.start()
    _, body, _ = await asking(service.http_port)("/api/trace/order-1")
    assert body["trouble"] == NO_LEDGER
    assert [copy["fate"] for copy in body["journeys"][0]["messages"][0]["copies"]] == ["unknown"]
    _, body, _ = await asking(service.http_port)("/healthz")
    assert "ledger" not in body.get("notes", {})
    await service.stop()


async def test_over_grpc(client: MgmtClient, ledger: LedgerFiles) -> None:
    """The command line gets the same answer over gRPC, and none where nothing is on record."""
    trace = await client.trace("order-1", 1)
    assert [journey.match.uid for journey in trace.journeys] == [uid(1)]
    assert (await client.trace("none", 1)).journeys == []
    found = await client.search(Sought(queue="q"), 1)
    assert [journey.match.uid for journey in found.journeys] == [uid(1)]
    with pytest.raises(SyntaxFault):
        await client.search(Sought(), 1)
    with pytest.raises(SyntaxFault):
        await client.trace("order-1", 0)
