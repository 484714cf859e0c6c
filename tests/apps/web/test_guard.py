"""Who is let in, from where, and with what: on every route of the table."""

import socket
from collections.abc import Iterator

import httpx2
import pytest
from tests.apps.web.served_house import ServedHouse, refused

from lamina.apps.web.guard import MAX_BYTES
from lamina.apps.web.routes import Route, all_routes

TABLE = all_routes()
NAMES = [f"{route.method} {route.path}" for route in TABLE]
UNSAFE = [route for route in TABLE if route.method != "GET"]


def fill(route: Route, **values: str) -> str:
    """The address of a route, with something in the place of each parameter."""
    path = route.path.replace(":path}", "}")
    while "{" in path:
        name = path.partition("{")[2].partition("}")[0]
        path = path.replace(f"{{{name}}}", values.get(name, "nothing"))
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHouse]:
    """One server for all of these: nothing is changed by what is refused."""
    from tests.browser.vendor import Vendor

    folder = tmp_path_factory.mktemp("harbour")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_DATA", str(folder / "data"))
        vendor = Vendor()
        house = ServedHouse(folder, vendor).start()
        yield house
        house.stop()
        vendor.close()


@pytest.mark.parametrize("route", TABLE, ids=NAMES)
def test_nobody_comes_in_without_a_cookie(shared: ServedHouse, route: Route) -> None:
    address = shared.server.address
    with httpx2.Client(base_url=address, headers={"origin": address}) as stranger:
        answer = stranger.request(
            route.method, fill(route), content=b"{}", headers={"content-type": "application/json"}
        )
        assert refused(answer) == (401, "login")
        stranger.cookies.set(shared.server.door.cookie, "made-up")
        assert stranger.get(fill(route)).status_code == 401


@pytest.mark.parametrize("route", TABLE, ids=NAMES)
def test_another_name_for_this_machine_is_not_answered_to(
    shared: ServedHouse, route: Route
) -> None:
    port = shared.server.door.port
    hosts = ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil:{port}", "")
    for host in hosts:
        answer = shared.client.request(route.method, fill(route), headers={"host": host})
        # Without any name the server itself refuses.
        assert answer.status_code in (421, 400), host
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("route", TABLE, ids=NAMES)
def test_pages_of_other_origins_are_refused(shared: ServedHouse, route: Route) -> None:
    port = shared.server.door.port
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        answer = shared.client.request(
            route.method, fill(route), headers={"origin": origin}, content=b"{}"
        )
        assert refused(answer) == (403, "foreign_origin")
        assert "access-control-allow-origin" not in answer.headers
    del shared.client.headers["origin"]
    try:
        for site in ("cross-site", "same-site"):
            headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            answer = shared.client.request(route.method, fill(route), headers=headers)
            assert refused(answer) == (403, "foreign_origin")
    finally:
        shared.client.headers["origin"] = shared.server.address


@pytest.mark.parametrize("route", UNSAFE, ids=lambda route: f"{route.method} {route.path}")
def test_changes_come_as_json_from_the_page_itself(shared: ServedHouse, route: Route) -> None:
    path = fill(route)
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; b=1"):
        answer = shared.client.request(
            route.method, path, content=b"text=x", headers={"content-type": kind}
        )
        assert refused(answer) == (415, "not_json")
    # A program that says nothing of where it comes from is no page of ours.
    with httpx2.Client(base_url=shared.server.address, cookies=shared.client.cookies) as program:
        answer = program.request(
            route.method, path, content=b"{}", headers={"content-type": "application/json"}
        )
        assert refused(answer) == (403, "foreign_origin")


def test_a_program_may_say_that_it_is_the_page(shared: ServedHouse) -> None:
    headers = {"sec-fetch-site": "same-origin"}
    with httpx2.Client(base_url=shared.server.address, cookies=shared.client.cookies) as page:
        answer = page.post("/api/workspaces", json={"path": "relative"}, headers=headers)
    assert refused(answer) == (422, "invalid")


@pytest.mark.parametrize(
    "route",
    [route for route in TABLE if "{" in route.path],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_what_is_not_known_is_not_found(shared: ServedHouse, route: Route) -> None:
    """A workspace that there is none of; and in one that is there, any other name."""
    body = {"text": "x", "name": "x", "question": "1", "entry": "1", "what": "x", "path": "x"}
    known: dict[str, object] = {n: value for n, value in body.items() if _takes(route, n)}
    for name, value in _needed(route).items():
        known.setdefault(name, value)
    query = {name: "x" for name in ("q", "etag") if _asks(route, name)}
    names: list[dict[str, str]] = [{}]
    if route.path.count("{") > 1:
        names.append({"workspace": shared.workspace})
    for values in names:
        answer = shared.client.request(
            route.method, fill(route, **values), params=query, json=known,
            headers={"content-type": "application/json"},
        )  # fmt: skip
        status, code = refused(answer)
        assert status == 404, (status, answer.text)
        assert code.startswith("unknown_")


def _asks(route: Route, name: str) -> bool:
    return route.query is not None and name in route.query.__struct_fields__


def _takes(route: Route, name: str) -> bool:
    return route.body is not None and name in route.body.__struct_fields__


def _needed(route: Route) -> dict[str, object]:
    """Something of its type for every field that a body has to have."""
    samples: dict[str, object] = {
        "decision": "deny", "content": "x", "settings": {}, "digest": "x", "key": "x",
        "include": "always", "item": "rule:x", "etag": "x",
    }  # fmt: skip
    return {name: value for name, value in samples.items() if _takes(route, name)}


def test_every_answer_has_the_headers_that_hold_the_page(shared: ServedHouse) -> None:
    answers = [
        shared.client.get("/api/me"),
        shared.client.get("/api/nothing"),
        shared.client.get("/nothing.js"),
        shared.client.get("/", headers={"host": "evil"}),
    ]
    assert [answer.status_code for answer in answers][:2] == [200, 404]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_body_over_the_limit_is_refused_by_its_word_and_by_counting(
    shared: ServedHouse,
) -> None:
    headers = {"content-type": "application/json"}
    body = b'{"path": "' + b"x" * MAX_BYTES + b'"}'
    answer = shared.client.post("/api/workspaces", content=body, headers=headers)
    assert refused(answer) == (413, "too_large")

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(body), 1 << 20):
            yield body[at : at + (1 << 20)]

    answer = shared.client.post("/api/workspaces", content=pieces(), headers=headers)
    assert refused(answer) == (413, "too_large")


def test_no_socket_is_opened(shared: ServedHouse) -> None:
    door = shared.server.door
    cookie = shared.client.cookies[door.cookie]
    lines = (
        "GET /api/me HTTP/1.1", f"Host: 127.0.0.1:{door.port}", "Connection: Upgrade",
        "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Cookie: {door.cookie}={cookie}",
        f"Origin: http://127.0.0.1:{door.port}",
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        assert b" 101 " not in connection.recv(4096).splitlines()[0]


def test_nothing_listens_beyond_the_loopback(shared: ServedHouse) -> None:
    port = shared.server.door.port
    addresses = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), port)}
    for address in addresses - {"::1"}:
        if not address.startswith("127."):
            with pytest.raises((ConnectionError, TimeoutError)):
                socket.create_connection((address, port), timeout=2)


def test_a_token_lets_one_browser_in_once(shared: ServedHouse) -> None:
    entrance = shared.server.entrance()
    with httpx2.Client() as first, httpx2.Client() as second:
        answer = first.get(entrance)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert first.get(f"{shared.server.address}/api/me").status_code == 200
        # It is out of the address, and of no use to anybody else.
        assert second.get(entrance).status_code == 401
        assert "set-cookie" not in second.get(entrance).headers
        # Whoever was let in may click it again.
        assert first.get(entrance).status_code == 303
        assert second.get(f"{shared.server.address}/?token=x").status_code == 401
        assert second.get(f"{shared.server.address}/").status_code == 401


def test_a_body_that_is_no_json_is_refused(shared: ServedHouse) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"{", b"[]", b'"x"', b"\xff"):
        answer = shared.client.post("/api/workspaces", content=body, headers=headers)
        assert refused(answer) == (422, "invalid")
