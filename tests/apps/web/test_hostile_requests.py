"""What a stranger sends: every route with hostile paths, queries and bodies, in a folder of hostile
names. Nothing of it is the server's fault, so nothing of it is answered with a 5xx."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import quote

import msgspec
import pytest
from tests.apps.web.served_house import ServedHouse

from lamina.apps.web.routes import Route, all_routes

# Quoted for an address: a NUL, what is no UTF-8, an encoded surrogate, climbing, loops, a home that
# nobody has, line feeds, marks of headers, and what is too long for a name.
ADDRESS_PARTS = (
    "%00", "a%00.md", "%ff%fe", "%ed%a0%80", "..%2f..%2fetc%2fpasswd", "%2e%2e", "loop",
    "loop%2Fx.md", "round%2Fround%2Fround.md", "~nobody%2Fx", "~nosuchperson%2Fx", "~%00",
    "a%0Ab.md", "a%0d%0aX:%20y.md", "%F0%9F%92%A9", "a" * 300, "%22%27%3B", "-1", "9" * 400,
    "1e999", "NaN", "%2A", "%5B",
)  # fmt: skip
TEXTS = (
    "", "\0", "a\0.md", "\ud800", "x\udcff.md", "loop/x.md", "loop", "round/round/x.md",
    "~nobody/x", "~nosuchperson/x", "~\0", "/proc/self/mem", "/dev/zero", "../../etc/passwd",
    "a\nb.md", "a" * 70_000,
    "@loop @~nobody/x @\ud800 @\0 [[\0]] ![[loop]]", "rule:\0", "tool:\ud800/x", "tag:\0", "\u202e",
    "http://[", "http://\0/", "file:///etc/passwd", "[" * 10_000, "-1", "openai:\0", "\r\nx: y",
)  # fmt: skip
WRONG: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, -(2**63) - 1, 2**64, [], [[]], {}, {"\0": "\ud800"}, [None],
    "", "\0", ["\0"], ["\ud800"], ["loop/x.md", "~nobody/x"], {"target": "\0"},
    {"cache_lifetime_s": 1e308}, {"window": 10**30}, {"window": -1}, {"x.y.z": [1]},
)  # fmt: skip
DEEP = 100_000
RAW = (
    b"\xff", b'{"text": "\xff\xfe"}', b'{"\xed\xa0\x80": 1}', b"[" * DEEP, b'{"a":' * DEEP,
    b'{"text":' + b"[" * DEEP + b"]" * DEEP + b"}", b'{"text": "\\ud800"}', b'{"text": 1e999}',
    b"\xef\xbb\xbf{}", b"null", b"7", b'"x"', b"{}{}", b"{", b"\0", b"nan",
)  # fmt: skip


def make_hostile(folder: Path) -> None:
    """Names that a folder can have, and hardly any does."""
    (folder / "loop").symlink_to("loop")
    (folder / "round").mkdir()
    (folder / "round" / "round").symlink_to("..", target_is_directory=True)
    (folder / "gone.md").symlink_to("nowhere.md")
    os.mkfifo(folder / "pipe.md")
    root = os.fsencode(folder)
    for name in (b"caf\xe9.md", b"line\nfeed.md", b"tab\t.md", b"\xed\xa0\x80.md", b'quote".md'):
        Path(os.fsdecode(root + b"/" + name)).write_text("# Odd\n\nAn odd note.\n", "utf-8")
    Path(os.fsdecode(root + b"/f\xf6lder")).mkdir()
    Path(os.fsdecode(root + b"/f\xf6lder/in.md")).write_text("# In\n", "utf-8")


def example(kind: Any, name: str) -> Any:
    """A value that a field takes."""
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if kind in (int, float):
        return 1
    if kind is bool:
        return False
    if get_origin(kind) is tuple:
        return []
    if get_origin(kind) is dict:
        return {}
    return "plan.md" if "path" in name else "What now?"


def bodies_of(route: Route) -> Iterator[bytes]:
    if route.body is None:
        return
    yield from RAW
    fields = msgspec.structs.fields(route.body)
    usual = {f.encode_name: example(f.type, f.name) for f in fields if f.required}
    for field in fields:
        for value in (*TEXTS, *WRONG):
            yield json.dumps(usual | {field.encode_name: value}).encode()


def queries_of(route: Route) -> Iterator[str]:
    yield "?" + "&".join(f"x{n}=1" for n in range(3))
    if route.query is None:
        return
    fields = msgspec.structs.fields(route.query)
    usual = {f.encode_name: example(f.type, f.name) for f in fields if f.required}
    for field in fields:
        for part in ADDRESS_PARTS:
            rest = "".join(
                f"&{name}={quote(str(value))}"
                for name, value in usual.items()
                if name != field.encode_name
            )
            yield f"?{field.encode_name}={part}{rest}"


def places_of(route: Route, usual: dict[str, str]) -> Iterator[str]:
    """The route's address with each of its parameters hostile, and with none."""
    names = re.findall(r"{(\w+)(?::path)?}", route.path)
    for hostile in (None, *names):
        for part in ADDRESS_PARTS if hostile else ("",):
            parts = {name: usual.get(name, "plan.md") for name in names}
            if hostile:
                parts[hostile] = part
            yield re.sub(r"{(\w+):path}", r"{\1}", route.path).format(**parts)


def requests_of(
    route: Route, usual: dict[str, str], folder: Path
) -> Iterator[tuple[str, bytes | None]]:
    plain, *hostile = places_of(route, usual)
    body = None if route.body is None and route.method in ("GET", "DELETE") else b"{}"
    for place in hostile:
        yield place, body
    for query in queries_of(route):
        yield plain + query, body
    for path in ("", "loop", "loop/x", "round/round", "gone.md", "pipe.md", "plan.md/x"):
        # Where folders are named by whole paths, with what is in this one.
        if route.path == "/api/folders":
            yield f"{plain}?path={quote(str(folder / path))}", None
        elif route.body is not None and route.path == "/api/workspaces":
            for create in (False, True):
                yield plain, json.dumps({"path": str(folder / path), "create": create}).encode()
    for data in bodies_of(route):
        yield plain, data


def ask(house: ServedHouse, method: str, place: str, body: bytes | None) -> tuple[int, str]:
    """The status, and what a failure says. Of a stream no more than its beginning is read."""
    headers = {} if body is None else {"content-type": "application/json"}
    with house.client.stream(method, place, content=body, headers=headers) as answer:
        text = answer.read().decode("utf-8", "replace") if answer.status_code >= 400 else ""
        return answer.status_code, text


@pytest.mark.parametrize(
    "route", all_routes(), ids=lambda route: f"{route.method} {route.path}".replace("/api/", "")
)
def test_no_request_of_a_stranger_is_answered_with_a_5xx(
    folder: Path, house: ServedHouse, route: Route
) -> None:
    make_hostile(folder)
    usual = {"workspace": house.workspace, "session": house.begin(), "agent": "helper"}
    failures = []
    for place, body in requests_of(route, usual, folder):
        if route.path == "/api/workspaces/{workspace}" and place.endswith(house.workspace):
            continue
        status, text = ask(house, route.method, place, body)
        if status >= 500:
            failures.append((place[:160], (body or b"")[:90], text[:200]))
    assert not failures, (len(failures), failures[:8])


def test_names_that_are_no_text_do_not_stop_completion_and_the_folder_picker(
    folder: Path, house: ServedHouse
) -> None:
    make_hostile(folder)
    labels = {item["label"] for item in house.get(rest="/complete", q="")["items"]}
    assert {"plan.md", "sea/", "line\nfeed.md"} <= labels
    answer = house.client.get("/api/folders", params={"path": str(folder)})
    assert answer.status_code == 200
    assert {row["name"] for row in answer.json()["folders"]} >= {"round", "sea"}


def test_a_note_whose_name_has_a_line_feed_can_be_opened(folder: Path, house: ServedHouse) -> None:
    make_hostile(folder)
    note = house.get(rest="/notes/line%0Afeed.md")
    assert "An odd note." in note["text"]
    answer = house.client.get(house.place(rest="/files/line%0Afeed.md"))
    assert answer.status_code < 300 or answer.json()["error"]["code"] != "unknown_route"


@pytest.mark.parametrize(
    ("path", "problem"),
    [("~nosuchperson/x", "not an absolute path"), ("{folder}/loop", "not a folder"), ("\0", "NUL")],
)
def test_a_folder_that_cannot_be_is_refused_with_its_reason(
    folder: Path, house: ServedHouse, path: str, problem: str
) -> None:
    make_hostile(folder)
    answer = house.client.get("/api/folders", params={"path": path.format(folder=folder)})
    assert answer.status_code == 422
    assert problem in answer.json()["error"]["message"]


def test_a_chosen_folder_that_became_a_loop_is_listed_as_gone(
    folder: Path, house: ServedHouse
) -> None:
    chosen = folder.parent / "chosen"
    chosen.mkdir()
    answer = house.client.post("/api/workspaces", json={"path": str(chosen)})
    assert answer.status_code == 201
    chosen.rmdir()
    chosen.symlink_to(chosen)
    listed = house.client.get("/api/workspaces").json()["workspaces"]
    assert {row["path"]: row["is_there"] for row in listed}[str(chosen)] is False


def test_a_body_that_is_no_text_or_too_deep_is_refused_with_its_reason(house: ServedHouse) -> None:
    place = house.place(house.begin(), "/turns")
    for body, problem in ((b'{"text": "\xff"}', "is not JSON"), (b"[" * DEEP, "Expected")):
        status, text = ask(house, "POST", place, body)
        assert status == 422
        assert problem in text
    deep = b'{"settings":' + b'{"a":' * DEEP + b"1" + b"}" * (DEEP + 1)
    status, text = ask(house, "PATCH", house.place(house.begin(), "/settings"), deep)
    assert status == 422
    assert "nested too deeply" in text
