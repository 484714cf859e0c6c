"""Agents over HTTP: read, edited through the one door, checked, tried, trusted."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
from tests.apps.web.served_house import Json, ServedHouse, refused, told
from tests.apps.web.test_request_routes import write_agent

HOSTILE = (
    "../../secret.md", "..%2f..%2fsecret.md", "%2e%2e/%2e%2e/%2e%2e/secret.md", "/etc/passwd",
    "%2fetc%2fpasswd", "rules/../../../secret.md", "rules/%00.md", "rules\\..\\..\\secret.md",
    "rules/.hidden.md", ".git/config", "out/secret.md", "rules/out.md", "C:/x.md",
    "rules/" + "a/" * 200 + "x.md", "rules/" + "a" * 5_000 + ".md",
)  # fmt: skip


@pytest.fixture
def agent(house: ServedHouse) -> str:
    write_agent(house.folder)
    return house.place(rest="/agents/master")


def file_of(house: ServedHouse, name: str) -> Path:
    return house.folder / ".lamina/agents/master" / name


def test_agents_are_listed_with_what_they_hold(house: ServedHouse, agent: str) -> None:
    (card,) = house.get(rest="/agents")["agents"]
    assert (card["id"], card["where"], card["rules"], card["references"]) == (
        "master", "workspace", 5, 1,
    )  # fmt: skip
    page = told(house.client.get(agent))
    assert [part["text"] for part in page["parts"]] == ["You are the harbour master."]
    tides = next(guide for guide in page["guides"] if guide["name"] == "tides")
    assert (tides["file"], tides["include"], tides["level"]) == ("rules/tides.md", "agent", 20)
    assert tides["tokens"] > 0
    kinds = {row["path"]: row["kind"] for row in page["files"]}
    assert kinds["rules/tone.md"] == "rule"
    assert kinds["references/words.md"] == "reference"
    assert (kinds["persona.md"], kinds["agent.yaml"]) == ("persona", "agent")


def test_keys_of_servers_are_not_told(house: ServedHouse, agent: str) -> None:
    servers = (
        '{"mcpServers": {"sea": {"url": "https://me:secret1@sea.example/mcp?key=secret2",'
        ' "headers": {"X": "secret3"}}, "dock": {"command": "dock", "args": ["--key", "secret4"],'
        ' "env": {"KEY": "secret5"}}}}'
    )
    file_of(house, "mcp.json").write_text(servers, "utf-8")
    answer = house.client.get(agent)
    assert "secret" not in answer.text
    by_name = {server["name"]: server for server in answer.json()["servers"]}
    assert by_name["sea"]["url"] == "https://sea.example/mcp"
    assert by_name["dock"]["command"] == "dock"


def test_two_agents_of_one_name_are_told_apart(house: ServedHouse, agent: str) -> None:
    told(house.client.post(house.place(rest="/agents"), json={"name": "master", "where": "user"}))
    cards = house.get(rest="/agents")["agents"]
    assert [(card["id"], card["where"], card["is_shadowed"]) for card in cards] == [
        ("master", "user", False), ("workspace:master", "workspace", True),
    ]  # fmt: skip
    page = told(house.client.get(house.place(rest="/agents/workspace:master")))
    assert page["card"]["rules"] == 5


def test_a_new_agent_can_be_read_at_once_and_is_not_written_over(house: ServedHouse) -> None:
    agents = house.place(rest="/agents")
    page = told(house.client.post(agents, json={"name": "pilot"}))
    assert page["card"]["where"] == "workspace"
    assert page["problems"] == []
    again = house.client.post(agents, json={"name": "pilot"})
    assert refused(again) == (400, "usage")
    for name in ("../pilot", "a/b", "..", "", "a\u0000b"):
        assert house.client.post(agents, json={"name": name}).status_code == 400
    assert sorted(os.listdir(house.folder / ".lamina/agents")) == ["pilot"]


def test_a_file_is_replaced_only_if_it_is_still_what_was_read(
    house: ServedHouse, agent: str
) -> None:
    place = f"{agent}/files/persona.md"
    read = told(house.client.get(place))
    assert read["etag"] == sha256(read["text"].encode()).hexdigest()
    new = {"text": "You are the pilot.\r\n", "etag": read["etag"]}
    written = told(house.client.put(place, json=new))
    # As it was sent, to the byte.
    assert file_of(house, "persona.md").read_bytes() == b"You are the pilot.\r\n"
    assert refused(house.client.put(place, json=new)) == (409, "file_changed")
    without = {"text": "x"}
    assert refused(house.client.put(place, json=without)) == (409, "path_taken")
    told(house.client.put(place, json={"text": "Mate.", "etag": written["etag"]}))
    assert told(house.client.get(place))["text"] == "Mate."


def test_a_rule_is_written_and_deleted(house: ServedHouse, agent: str) -> None:
    place = f"{agent}/files/rules/new%20one.md"
    text = "---\ndescription: New.\ninclude: manual\n---\nBe new.\n"
    written = told(house.client.put(place, json={"text": text}))
    assert "new one" in {guide["name"] for guide in told(house.client.get(agent))["guides"]}
    assert refused(house.client.delete(place, params={"etag": "0" * 64})) == (409, "file_changed")
    assert house.client.delete(place).status_code == 422
    assert house.client.delete(place, params={"etag": written["etag"]}).status_code == 204
    assert not file_of(house, "rules/new one.md").exists()
    persona = told(house.client.get(f"{agent}/files/persona.md"))
    kept = house.client.delete(f"{agent}/files/persona.md", params={"etag": persona["etag"]})
    assert refused(kept) == (400, "usage")


def test_nothing_outside_of_the_agent_is_read_or_written(house: ServedHouse, agent: str) -> None:
    secret = house.folder / "secret.md"
    secret.write_text("nobody's", "utf-8")
    (house.folder / ".git").mkdir()
    (house.folder / ".git/config").write_text("[core]", "utf-8")
    file_of(house, "out").symlink_to(house.folder)
    file_of(house, "rules/out.md").symlink_to(secret)
    before = {path: path.read_bytes() for path in house.folder.rglob("*") if path.is_file()}
    for path in HOSTILE:
        for answer in (
            house.client.get(f"{agent}/files/{path}"),
            house.client.put(f"{agent}/files/{path}", json={"text": "mine"}),
            house.client.delete(f"{agent}/files/{path}", params={"etag": "0" * 64}),
        ):
            # A client may have resolved the dots itself; nothing is there then either.
            assert answer.status_code in (400, 404, 405, 409), (path, answer.status_code)
            assert "nobody's" not in answer.text
            assert "[core]" not in answer.text
    after = {path: path.read_bytes() for path in house.folder.rglob("*") if path.is_file()}
    assert after == before


def test_an_agent_of_nobody_is_not_found(house: ServedHouse, agent: str, tmp_path: Path) -> None:
    write_agent(tmp_path)
    outside = str(tmp_path / ".lamina/agents/master").replace("/", "%2F")
    for name in ("nobody", outside, "%2e%2e", "%2E", "~", "folder:master", "%00"):
        for rest in ("", "/trust", "/usage", "/files/persona.md"):
            answer = house.client.get(house.place(rest=f"/agents/{name}{rest}"))
            assert answer.status_code == 404, (name, rest, answer.status_code)
            assert "harbour master" not in answer.text


def test_include_is_changed_and_all_else_stays_byte_for_byte(
    house: ServedHouse, agent: str
) -> None:
    head = b"---\r\n# mine\r\ndescription: 'How  it sounds.'  # two\r\ninclude: always # why\r\n"
    body = b"---\r\n\r\nBe brief.\t\r\n\r\n\r\nNo newline at the end"
    file_of(house, "rules/tone.md").write_bytes(head + body)
    place = f"{agent}/include"
    page = told(house.client.post(place, json={"item": "rule:tone", "include": "agent"}))
    tone = next(guide for guide in page["guides"] if guide["name"] == "tone")
    assert tone["include"] == "agent"
    changed = file_of(house, "rules/tone.md").read_bytes()
    assert changed == head.replace(b"include: always", b'include: "agent"') + body
    file_of(house, "rules/bare.md").write_bytes(b"Just a text.\n")
    told(house.client.post(place, json={"item": "rule:bare", "include": "always"}))
    assert file_of(house, "rules/bare.md").read_bytes() == (
        b"---\ninclude: always\n---\nJust a text.\n"
    )
    stale = {"item": "rule:tone", "include": "manual", "etag": "0" * 64}
    assert refused(house.client.post(place, json=stale)) == (409, "file_changed")
    nobody = {"item": "rule:nobody", "include": "manual"}
    assert refused(house.client.post(place, json=nobody)) == (400, "usage")
    wrong = {"item": "rule:tone", "include": "sometimes"}
    assert refused(house.client.post(place, json=wrong)) == (422, "invalid")


def test_a_check_names_what_is_odd(house: ServedHouse, agent: str) -> None:
    file_of(house, "rules/odd.md").write_text("---\ninclude: perhaps\n---\nOdd.\n", "utf-8")
    file_of(house, "agent.yaml").write_bytes(b"name: [\xff\n")
    check = told(house.client.post(f"{agent}/check", json={}))
    assert check["errors"] + check["warnings"] == len(check["problems"]) >= 2
    assert any("perhaps" in problem["problem"] for problem in check["problems"])


def test_a_question_is_tried_and_chooses_what_a_session_chooses(
    house: ServedHouse, agent: str
) -> None:
    question = "Which berth at the quay has the ship?"
    choice = told(house.client.post(f"{agent}/select", json={"question": question}))
    chosen = {item["name"]: item for item in choice["items"]}
    assert chosen["tone"]["why"] == "always included"
    assert chosen["berths"]["origin"]
    assert chosen["berths"]["tokens"] > 0
    assert choice["tokens"] == sum(item["tokens"] for item in choice["items"] if item["origin"])
    assert "words alone" in choice["method"]
    session = house.begin(agent="master")
    house.ask(session, question)
    context = house.get(session, "/context/last")
    assert {rule["name"] for rule in (*context["rules"], *context["references"])} == chosen.keys()
    modest = told(
        house.client.post(f"{agent}/select", json={"question": question, "preset": "conservative"})
    )
    assert {item["name"] for item in modest["items"]} <= chosen.keys()
    for miss in (*choice["near"], *modest["near"]):
        assert miss["as_of"] == "now"
        assert miss["name"] not in {item["name"] for item in modest["items"]}
    assert refused(house.client.post(f"{agent}/select", json={"question": " "}))[0] == 422


def test_usage_counts_the_sessions_of_the_agent(house: ServedHouse, agent: str) -> None:
    assert told(house.client.get(f"{agent}/usage"))["agents"] == []
    house.ask(house.begin(agent="master"), "Which berth?")
    house.ask(house.begin(), "Which berth?")
    (use,) = told(house.client.get(f"{agent}/usage"))["agents"]
    assert (use["agent"], use["sessions"], use["turns"]) == ("master", 1, 1)
    assert {item["item"] for item in use["items"]} >= {"rule:tone", "reference:words"}


def test_trust_is_given_to_what_was_shown_and_to_nothing_else(
    house: ServedHouse, agent: str
) -> None:
    server = '{{"mcpServers": {{"dock": {{"command": "{}"}}}}}}'
    file_of(house, "mcp.json").write_text(server.format("dock"), "utf-8")
    place = f"{agent}/trust"
    shown: Json = told(house.client.get(place))
    assert (shown["standing"], shown["counts"], shown["servers"]) == ("new", False, ["dock"])
    assert any("dock" in line for line in shown["lines"])
    file_of(house, "mcp.json").write_text(server.format("evil"), "utf-8")
    late = house.client.post(place, json={"digest": shown["digest"]})
    assert refused(late) == (409, "trust_changed")
    shown = told(house.client.get(place))
    given = told(house.client.post(place, json={"digest": shown["digest"]}))
    assert (given["standing"], given["counts"]) == ("recorded", True)
    file_of(house, "mcp.json").write_text(server.format("dock"), "utf-8")
    changed = told(house.client.get(place))
    assert (changed["standing"], changed["counts"]) == ("changed", False)
    assert changed["changes"]
    gone = told(house.client.delete(place))
    assert gone["standing"] == "new"
    assert refused(house.client.delete(place)) == (400, "usage")


def test_what_changed_since_a_session_began_is_shown_and_taken_over(
    house: ServedHouse, agent: str
) -> None:
    session = house.begin(agent="master")
    house.ask(session, "When is low tide?")
    (request,) = house.get(session, "/requests")["requests"]
    context = f"/context/{request['id']}"
    assert house.get(session, context)["agent_changes"] == []
    tone = file_of(house, "rules/tone.md")
    tone.write_text(tone.read_text("utf-8").replace("include: always", "include: manual"), "utf-8")
    (change,) = house.get(session, context)["agent_changes"]
    assert (change["item"], change["here"], change["now"]) == ("rule:tone", "always", "manual")
    items = house.get(session, "/items")
    assert items["changes"] == [change]
    assert "rule:tone" in {row["item"] for row in items["items"]}
    assert house.post(session, "/items/adopt")["changes"] == [change]
    items = house.get(session, "/items")
    assert items["changes"] == []
    assert "rule:tone" not in {row["item"] for row in items["items"]}
