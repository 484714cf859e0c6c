"""What the strict servers share: vendors in process, driven through their own SDKs.

A server refuses with the vendor's 400 what the vendor refuses, and answers with a body of the
vendor's form. `send` is one request through the real SDK client.
"""

import json
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Protocol

import httpx2

JSON = dict[str, Any]
# What a conversation amounts to on any wire: a role and one part each, without cache markers.
Flat = list[tuple[str, JSON]]


class Refused(Exception):
    """What the vendor's 400 says."""


def require(condition: object, problem: str) -> None:
    if not condition:
        raise Refused(problem)


class Vendor(Protocol):
    """One vendor: its target, its server, and bodies as its API writes them."""

    target: str
    # How usage of 1,000 tokens of input, 800 of them cached, and 20 of output is written.
    usage: JSON

    def send(self, request: JSON, reply: JSON | bytes) -> Any:
        """Sends `request` through the SDK to a server that checks it and answers `reply`."""
        ...

    def answer(self, text: str | None, *, stop: str | None = "") -> JSON:
        """A body that says `text`; the vendor's usual stop unless given."""
        ...

    def calling(self, *calls: tuple[str, str, JSON]) -> JSON:
        """A body that calls tools: id, name and arguments each."""
        ...

    def system_text(self, request: JSON) -> str: ...

    def flatten(self, request: JSON) -> Flat: ...

    def images(self, request: JSON) -> list[bytes]: ...


class Server:
    """A transport that checks the requests of one vendor and keeps the last one's body."""

    def __init__(self, check: Callable[[JSON], None], refusal: Callable[[str], JSON]) -> None:
        self._check = check
        self._refusal = refusal
        self.reply: JSON | bytes = b""
        self.seen: JSON = {}

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.seen = json.loads(request.content)
        try:
            self._check(self.seen)
        except Refused as refused:
            return httpx2.Response(400, json=self._refusal(str(refused)))
        if isinstance(self.reply, bytes):
            return httpx2.Response(200, content=self.reply, headers={"content-type": "text/html"})
        # `json=` would refuse the lone surrogates that escapes can carry.
        body = json.dumps(self.reply).encode()
        return httpx2.Response(200, content=body, headers={"content-type": "application/json"})

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(self))


def check_image(media_type: str, data: str) -> None:
    """Refuses what is not base64 of an image of its type."""
    require(media_type == "image/png", f"unsupported image type {media_type!r}")
    raw = b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    require(raw.startswith(b"\x89PNG\r\n\x1a\n"), "the image is not a PNG")


def check_schema(schema: Any) -> None:
    require(isinstance(schema, dict) and schema.get("type") == "object", "schema is no object")
    require(isinstance(schema.get("properties"), dict), "object schema missing properties")


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def png(width: int = 3, height: int = 2) -> bytes:
    """A real picture: one grey rectangle."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x7f" * width for _ in range(height))
    packed = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + packed
