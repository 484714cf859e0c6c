"""What comes in over `lamina rpc`: lines as clients and enemies write them."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apps.cli.rpc_client import serving
from tests.fakes.sessions import run

from lamina.apps.cli.rpc.jsonrpc import JsonRpcFault, OverlongLine, read_call, split_lines

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE: list[tuple[bytes | OverlongLine, int, object]] = [
    (b"garbage", PARSE, None),
    (b"{", PARSE, None),
    (b"\x00\x01\x02", PARSE, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tr\xffee"}', PARSE, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', PARSE, None),
    (b'{"jsonrpc": "2.0", "id": NaN, "method": "tree"}', PARSE, None),
    (DEEP, PARSE, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tree", "params": ' + DEEP + b"}", PARSE, None),
    (b"x" * 10_000_000, PARSE, None),
    (OverlongLine(), PARSE, None),
    (b"[]", INVALID, None),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "tree"}]', INVALID, None),
    (b"null", INVALID, None),
    (b'"tree"', INVALID, None),
    (b"{}", INVALID, None),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "tree"}', INVALID, 1),
    (b'{"id": "a", "method": "tree"}', INVALID, "a"),
    (b'{"jsonrpc": "2.0", "id": 1}', INVALID, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "result": 5}', INVALID, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', INVALID, 1),
    (b'{"jsonrpc": "2.0", "id": {}, "method": "tree"}', INVALID, None),
    (b'{"jsonrpc": "2.0", "id": true, "method": "tree"}', INVALID, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "nope"}', UNKNOWN, 1),
    (b'{"jsonrpc": "2.0", "id": null, "method": "__init__"}', UNKNOWN, None),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "tree", "params": []}', PARAMS, 1.5),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tree", "params": null}', PARAMS, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tree", "params": {"a": 1}}', PARAMS, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "update_settings", "params": "x"}', PARAMS, 1),
]


@pytest.mark.parametrize(("line", "code", "number"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_line_is_refused_and_the_next_one_served(
    line: bytes | OverlongLine, code: int, number: object
) -> None:
    async def body() -> None:
        async with serving() as client:
            await client.read()
            await client.write(line)
            message = await client.read()
            assert (message["error"]["code"], message["id"]) == (code, number)
            assert len(message["error"]["message"]) < 500
            assert (await client.call("tree"))["leaf"] == "000000"

    run(body())


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("prompt", {}, "`text`"),
        ("prompt", {"text": 5}, "$.text"),
        ("prompt", {"text": " \n"}, "`text` is blank"),
        ("prompt", {"text": "Q", "attach": "plan.md"}, "$.attach"),
        ("prompt", {"text": "Q", "attach": ["a", 5]}, "$.attach[1]"),
        ("prompt", {"text": "Q", "atach": []}, "`atach`"),
        ("decide", {"call_id": "c1"}, "`decision`"),
        ("decide", {"call_id": "c1", "decision": "maybe"}, "$.decision"),
        ("get_context", {"full": "yes"}, "$.full"),
        ("send_message", {"text": "Q", "deliver": "later"}, "$.deliver"),
        ("send_message", {"text": ""}, "`text` is blank"),
        ("navigate", {}, "`entry`"),
    ],
)
def test_wrong_params_are_named(method: str, params: dict[str, Any], field: str) -> None:
    async def body() -> None:
        async with serving() as client:
            refused = await client.refusal(method, **params)
            assert refused["code"] == -32602
            assert field in refused["message"]
            assert refused["message"].startswith(f"{method}: ")
            assert client.provider.bodies == []

    run(body())


def test_notifications_are_done_and_never_answered() -> None:
    async def body() -> None:
        async with serving() as client:
            await client.read()
            for line in (
                b'{"jsonrpc": "2.0", "method": "nope"}',
                b'{"jsonrpc": "2.0", "method": "prompt", "params": {}}',
                b'{"jsonrpc": "2.0", "method": "tree", "params": []}',
                b'{"jsonrpc": "2.0", "method": "update_settings", "params": {"window": 4321}}',
                b"",
                b"  \r",
            ):
                await client.write(line)
            shown = await client.call("settings")
            assert shown["window"] == 4321
            assert len(client.seen) == 2

    run(body())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_call_or_a_fault(line: bytes) -> None:
    fault = None
    try:
        assert isinstance(read_call(line).method, str)
    except JsonRpcFault as error:
        fault = error
    assert fault is None or fault.code in (PARSE, INVALID)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(0, 12))
def test_lines_come_out_the_same_however_the_bytes_arrive(
    data: bytes, cuts: list[int], most: int
) -> None:
    async def body() -> None:
        places = [0, *sorted(cuts), len(data)]
        chunks = [data[a:b] for a, b in pairwise(places)]

        async def arriving() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        found = [line async for line in split_lines(arriving(), most)]
        whole = data.split(b"\n")[:-1]
        assert found == [OverlongLine() if len(line) > most else line for line in whole]

    run(body())
