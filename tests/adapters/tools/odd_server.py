"""An MCP server that behaves as it is told: plain JSON lines, so that it starts at once.

Its first argument says how it behaves; each start is noted in the file that STARTS names.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
tools = {
    name: {"name": name, "description": f"Does {name}.", "inputSchema": OBJECT}
    for name in ("echo", "big", "hang", "die", "noise", "env", "picture", "grow", "child", "shape")
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id: Any, result: dict[str, Any]) -> None:
    say({"id": id, "result": result})


def text(id: Any, words: str) -> None:
    answer(id, {"content": [{"type": "text", "text": words}]})


def call(id: Any, name: str, given: dict[str, Any]) -> None:
    match name:
        case "echo":
            text(id, json.dumps(given))
        case "big":
            text(id, "x" * given["characters"])
        case "hang":
            pass
        case "die":
            sys.stderr.write("the disk is on fire\n")
            sys.stderr.flush()
            os._exit(3)
        case "noise":
            for _ in range(200):
                sys.stdout.buffer.write(b"\xff\xfe not a message {\n[]\n{}\n\n")
            sys.stderr.write("n" * 1_000_000)
            text(id, "heard through the noise")
        case "env":
            text(id, json.dumps({"env": dict(os.environ), "cwd": os.getcwd()}))
        case "picture":
            picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            link = {"type": "resource_link", "uri": "note://a", "name": "a"}
            inner = {"uri": "note://b", "mimeType": "application/pdf", "blob": "AAAA"}
            content = [picture, link, {"type": "resource", "resource": inner}]
            answer(id, {"content": content, "isError": True})
        case "shape":
            answer(id, {"content": [], "structuredContent": {"b": 1, "a": [True]}})
        case "grow":
            tools["grown"] = {"name": "grown", "description": "New.", "inputSchema": OBJECT}
            say({"method": "notifications/tools/list_changed"})
            text(id, "grown")
        case "child":
            child = subprocess.Popen(["sleep", "600"], start_new_session=False)
            text(id, str(child.pid))
        case _:
            say({"id": id, "error": {"code": -32602, "message": f"no tool {name}"}})


def list_tools(id: Any, cursor: str | None) -> None:
    match MODE:
        case "pages":
            at = int(cursor or 0)
            more = {} if at == 2 else {"nextCursor": str(at + 1)}
            page = {"name": f"page{at}", "inputSchema": OBJECT}
            answer(id, {"tools": [page], **more})
        case "endless":
            at = int(cursor or 0)
            many = [{"name": f"t{at}_{number}", "inputSchema": OBJECT} for number in range(100)]
            answer(id, {"tools": many, "nextCursor": str(at + 1)})
        case "changing":
            words = Path(sys.argv[2]).read_text()
            answer(id, {"tools": [{**tools["echo"], "description": words}]})
        case "schemas":
            wrong = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
            remote = {"type": "object", "properties": {"a": {"$ref": "http://h.invalid/s"}}}
            regex = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"\p{L}"}}}
            given = {"good": OBJECT, "wrong": wrong, "remote": remote, "regex": regex}
            listed = [{"name": name, "inputSchema": schema} for name, schema in given.items()]
            answer(id, {"tools": [*listed, listed[0]]})
        case _:
            answer(id, {"tools": list(tools.values())})


def handle(message: dict[str, Any]) -> None:
    id, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case "initialize":
            abilities = {"tools": {"listChanged": True}}
            info = {"name": "odd", "version": "1"}
            answer(
                id,
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": abilities,
                    "serverInfo": info,
                },
            )
        case "tools/list":
            list_tools(id, params.get("cursor"))
        case "tools/call":
            call(id, params["name"], params.get("arguments", {}))
        case _ if id is not None:
            say({"id": id, "error": {"code": -32601, "message": "no such method"}})


if os.environ.get("STARTS"):
    with Path(os.environ["STARTS"]).open("a") as starts:
        starts.write(f"{os.getpid()}\n")
if MODE == "dies":
    sys.exit("no token was given")
if MODE == "bomb":
    while True:
        sys.stdout.write("b" * 1_000_000)
if MODE in ("mute", "stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "mute":
    while True:
        time.sleep(600)
for line in sys.stdin:
    handle(json.loads(line))
while MODE == "stubborn":
    time.sleep(600)
