"""Sessions, workspaces, items, settings, branches and files over HTTP."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.apps.web.served_house import ServedHouse, refused

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_folder_is_chosen_listed_and_forgotten(house: ServedHouse, tmp_path: Path) -> None:
    other = tmp_path / "other"
    answer = house.client.post("/api/workspaces", json={"path": str(other)})
    assert refused(answer) == (404, "unknown_folder")
    answer = house.client.post("/api/workspaces", json={"path": str(other), "create": True})
    assert answer.status_code == 201
    row = answer.json()
    assert (row["path"], row["sessions"]) == (str(other), 0)
    listed = house.client.get("/api/workspaces").json()["workspaces"]
    assert [one["name"] for one in listed] == ["other", "harbour"]
    house.client.request("DELETE", f"/api/workspaces/{row['id']}")
    listed = house.client.get("/api/workspaces").json()["workspaces"]
    assert [one["name"] for one in listed] == ["harbour"]
    assert other.is_dir()


def test_folders_are_offered_to_choose_from(house: ServedHouse) -> None:
    listing = house.client.get("/api/folders", params={"path": str(house.folder)}).json()
    assert [row["name"] for row in listing["folders"]] == ["sea"]
    assert listing["notes"] == 1
    assert listing["parent"] == str(house.folder.parent)
    home = house.client.get("/api/folders").json()
    assert home["path"] == home["home"]
    gone = house.client.get("/api/folders", params={"path": "/no/such/folder"}).json()
    assert gone["problem"]


def test_me_says_where_it_all_is(house: ServedHouse) -> None:
    me = house.client.get("/api/me").json()
    assert me["workspace"] == house.workspace
    assert me["default_target"] == "openai:gpt-5"
    assert me["rights"] == ["read", "chat", "admin"]


def test_sessions_are_listed_found_and_paged(house: ServedHouse) -> None:
    names = ["Harbour plans", "Tide tables", "Harbour fees"]
    sessions = [house.begin(name=name) for name in names]
    page = house.get(rest="/sessions")
    assert {card["name"] for card in page["sessions"]} == set(names)
    assert page["total"] == 3
    found = house.get(rest="/sessions", q="harbour FEES")
    assert [card["session"] for card in found["sessions"]] == [sessions[2]]
    first = house.get(rest="/sessions", limit=2)
    rest = house.get(rest="/sessions", limit=2, after=first["after"])
    both = [card["session"] for card in first["sessions"] + rest["sessions"]]
    assert sorted(both) == sorted(sessions)
    assert rest["after"] is None


def test_a_session_is_named_and_deleted(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "When is low tide, if one may ask?")
    assert house.get(session)["title"] == "When is low tide, if one may ask?"
    head = house.client.patch(house.place(session), json={"name": "Tides"}).json()
    assert (head["name"], head["title"]) == ("Tides", "Tides")
    card = house.get(rest="/sessions")["sessions"][0]
    assert card["cost"] is not None
    deleted = house.client.delete(house.place(session)).json()
    assert deleted["bytes"] > 0
    assert refused(house.client.get(house.place(session))) == (404, "unknown_session")
    assert house.get(rest="/sessions")["sessions"] == []


def test_how_a_session_was_begun_is_remembered_across_a_restart(house: ServedHouse) -> None:
    session = house.begin(mode="qa", settings={"temperature": 0.25}, name="Answers")
    house.vendor.says("Nine [^1].")
    house.ask(session, "How many berths has the north quay?")
    house.restart()
    head = house.get(session)
    assert (head["mode"], head["name"]) == ("qa", "Answers")
    house.vendor.says("Nine [^1].")
    house.ask(session, "How many berths?")
    answer = house.rows(session)[-1]
    assert answer["text"].startswith("Nine [^1]")
    (source,) = [one for one in answer["sources"] if one["number"] == 1]
    assert source["path"] == "sea/tides.md"
    assert "nine" in source["excerpt"] or "noon" in source["excerpt"]


def test_a_session_that_cannot_be_as_it_was_asked_for_is_not_begun(house: ServedHouse) -> None:
    for options in ({"settings": {"nothing": 1}}, {"agent": "nobody"}, {"target": "nobody:x"}):
        answer = house.client.post(house.place(rest="/sessions"), json=options)
        assert answer.status_code == 400
    assert house.get(rest="/sessions")["sessions"] == []


def test_settings_are_shown_with_what_they_may_be_and_changed(house: ServedHouse) -> None:
    session = house.begin()

    def rows() -> dict[str, Any]:
        settings = house.get(session, "/settings")["settings"]
        return {row["name"]: row for row in settings}

    before = rows()
    assert before["history"]["choices"] == ["full", "strip"]
    assert before["temperature"]["nullable"]
    assert before["compaction_summary"]["kind"] == "integer"
    assert before["allow_hosts"]["kind"] == "texts"
    assert all(row["help"] for row in before.values())
    assert before["guide_search.top_n"]["value"] == 5
    changes = {
        "temperature": 0.5, "guide_search.top_n": 7, "guide_search.floor": 0.2,
        "allow_hosts": ["example.org"], "explicit_cache": True, "reasoning": "low",
    }  # fmt: skip
    place = house.place(session, "/settings")
    house.client.patch(place, json={"settings": changes})
    after = rows()
    assert {name: after[name]["value"] for name in changes} == changes
    answer = house.client.patch(place, json={"settings": {"history": "some"}})
    assert refused(answer) == (400, "invalid_setting")
    answer = house.client.patch(place, json={"settings": {"histroy": "full"}})
    assert "history" in answer.json()["error"]["message"]
    assert rows() == after


def write_clerk(folder: Path) -> None:
    files = {
        "agent.yaml": "name: clerk\n",
        "persona.md": "You are the clerk.\n",
        "rules/plain.md": "---\ninclude: always\ndescription: Plain\n---\nNo foreign words.\n",
        "rules/hand.md": "---\ninclude: manual\n---\nOnly if asked for.\n",
    }
    for path, text in files.items():
        place = folder / ".lamina" / "agents" / "clerk" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


def test_items_are_added_removed_and_pinned(house: ServedHouse) -> None:
    write_clerk(house.folder)
    session = house.begin(agent="clerk")
    items = house.get(session, "/items")
    assert [row["item"] for row in items["items"]] == ["rule:plain"]
    assert [row["item"] for row in items["available"]] == ["rule:hand"]
    assert house.post(session, "/items/add", {"what": "rule:hand"}) == {"changed": True}
    assert house.post(session, "/items/add", {"what": "rule:hand"}) == {"changed": False}
    assert house.post(session, "/items/remove", {"what": "rule:plain"}) == {"changed": True}
    assert house.post(session, "/items/pin", {"what": "plan.md"}) == {"changed": True}
    items = house.get(session, "/items")
    assert [row["item"] for row in items["items"]] == ["rule:hand"]
    assert [row["removed"] for row in items["available"]] == [True]
    assert [row["label"] for row in items["pins"]] == ["plan.md"]
    assert house.post(session, "/items/unpin", {"what": "plan.md"}) == {"changed": True}
    answer = house.client.post(house.place(session, "/items/add"), json={"what": "rule:none"})
    assert refused(answer) == (400, "usage")


def test_branches_are_gone_to_forked_and_labelled(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says("One.", "Two.", "Other.")
    house.ask(session, "First")
    house.ask(session, "Second")
    rows = house.rows(session)
    position = house.post(session, "/navigate", {"entry": rows[2]["id"]})
    assert position["text"] == "Second"
    assert [row["text"] for row in house.rows(session)] == ["First", "One."]
    house.ask(session, "Third")
    second, third = house.rows(session)[2]["siblings"]
    assert (second, house.rows(session)[2]["id"]) == (rows[2]["id"], third)
    place = house.place(session, f"/labels/{second}")
    assert house.client.put(place, json={"text": "left"}).json()["text"] == "left"
    house.post(session, "/navigate", {"entry": second, "end": True})
    assert [row["text"] for row in house.rows(session)] == ["First", "One.", "Second", "Two."]
    assert house.rows(session)[2]["label"] == "left"
    fork = house.post(session, "/fork", {"at": rows[1]["id"], "name": "Half"})["session"]
    assert [row["text"] for row in house.rows(fork)] == ["First", "One."]
    head = house.get(fork)
    assert (head["forked_from"], head["name"]) == (session, "Half")
    assert house.ask(fork, "On its own")[-1].data["ending"] == "answered"
    for rest, body in (("/navigate", {"entry": "zzz"}), ("/fork", {"at": "zzz"})):
        answer = house.client.post(house.place(session, rest), json=body)
        assert refused(answer) == (404, "unknown_entry")


def test_rows_are_read_by_window_and_found_by_words(house: ServedHouse) -> None:
    session = house.begin()
    for number in range(12):
        house.ask(session, f"Question number {number}", attach=["plan.md"])
    window = house.get(session, "/messages", **{"from": 4, "limit": 3})
    assert (window["first"], window["total"]) == (4, 24)
    assert [row["index"] for row in window["rows"]] == [4, 5, 6]
    assert window["rows"][0]["text"] == "Question number 2"
    assert window["rows"][0]["attached"][0]["label"] == "plan.md"
    entry = window["rows"][0]["id"]
    around = house.get(session, "/messages", around=entry, limit=5)
    assert entry in [row["id"] for row in around["rows"]]
    last = house.get(session, "/messages", **{"from": -2})
    assert [row["index"] for row in last["rows"]] == [22, 23]
    whole = house.get(session, "/messages", limit=500)["rows"]
    pieces = [
        row
        for start in range(0, 24, 5)
        for row in house.get(session, "/messages", **{"from": start, "limit": 5})["rows"]
    ]
    assert pieces == whole
    found = house.get(session, "/find", q="NUMBER 11")
    assert [row["index"] for row in found["rows"]] == [22, 23]
    assert house.get(session, "/find", q="nowhere")["total"] == 0
    answer = house.client.get(house.place(session, "/messages"), params={"around": "zzz"})
    assert refused(answer) == (404, "unknown_entry")


@pytest.mark.parametrize("form", ["markdown", "jsonl", "json", "requests"])
def test_a_session_is_given_away_as_a_file(house: ServedHouse, form: str) -> None:
    session = house.begin()
    house.ask(session, "Hello")
    answer = house.client.get(house.place(session, "/export"), params={"form": form})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.content


def test_a_file_of_another_program_becomes_a_session(house: ServedHouse) -> None:
    lines = [
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "x",
         "timestamp": "2026-03-01T08:00:00Z", "message": {"role": "user", "content": "Hi"}},
        {"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "x",
         "timestamp": "2026-03-01T08:00:01Z",
         "message": {"role": "assistant", "id": "m", "model": "claude-sonnet-5",
                     "content": [{"type": "text", "text": "Hello."}],
                     "usage": {"input_tokens": 900, "output_tokens": 2}}},
    ]  # fmt: skip
    content = "\n".join(map(json.dumps, lines))
    packed = base64.b64encode(content.encode()).decode()
    row = house.post("", "/import", {"name": "x.jsonl", "content": packed, "encoding": "base64"})
    assert [one["text"] for one in house.rows(row["session"])] == ["Hi", "Hello."]
    assert house.get(row["session"])["source"]
    # Somebody paid for it elsewhere; nobody knows here how much, which is not nothing.
    card = house.get("", "/sessions")["sessions"][0]
    assert (card["usage"]["input"], card["cost"]) == (900, None)
    body = {"name": "x.jsonl", "content": "@@", "encoding": "base64"}
    answer = house.client.post(house.place(rest="/import"), json=body)
    assert refused(answer) == (422, "invalid")
    body = {"name": "x.bin", "content": "neither here nor there"}
    assert house.client.post(house.place(rest="/import"), json=body).status_code == 400


def test_pictures_of_a_session_are_shown_and_nothing_else_is(house: ServedHouse) -> None:
    session = house.begin()
    (house.folder / "dot.png").write_bytes(PICTURE)
    house.ask(session, "What is this?", attach=["dot.png"])
    store = house.server.desk.stored(house.workspace, session).store
    picture = house.portal.call(store.put_blob, PICTURE)
    text = house.portal.call(store.put_blob, b"<script>alert(1)</script>")
    answer = house.client.get(house.place(session, f"/blobs/{picture}"))
    assert (answer.headers["content-type"], answer.content) == ("image/png", PICTURE)
    assert answer.headers["x-content-type-options"] == "nosniff"
    for digest in (text, "0" * 64, "..%2f..%2fetc"):
        answer = house.client.get(house.place(session, f"/blobs/{digest}"))
        assert answer.status_code == 404


def test_all_of_a_long_result_can_be_read(house: ServedHouse) -> None:
    from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

    (house.folder / "long.md").write_text("word\n" * 2_000, "utf-8")
    session = house.begin(files=True)
    call = EmulatedCall(name="read", arguments={"path": "long.md"})
    house.vendor.says(EmulatedAnswer(calls=(call,)), "Many words.")
    house.ask(session, "Read it.")
    row = house.rows(session)[1]["calls"][0]
    assert row["state"] == "done"
    assert row["is_cut"]
    assert row["seconds"] is not None
    whole = house.get(session, f"/results/{row['id']}")
    assert whole["characters"] > len(row["result"])
    answer = house.client.get(house.place(session, "/results/none"))
    assert refused(answer) == (404, "unknown_result")


def test_a_session_that_another_face_began_keeps_its_tools(house: ServedHouse) -> None:
    from tests.apps.cli.inside import lamina

    arguments = ("ask", "Hello", "--files", "--json")
    code, out, told = lamina(*arguments, cwd=house.folder)
    assert code == 0, told
    session = json.loads(out)["session"]
    assert house.get(session)["files"]
    preview = house.post(session, "/preview", {"text": "And now?"})
    assert preview["boundaries"] == []
    assert preview["left_out"] == []
    code, out, told = lamina("ask", "How many berths?", "--mode", "qa", "--json", cwd=house.folder)
    assert code == 0, told
    assert house.get(json.loads(out)["session"])["mode"] == "qa"


def test_an_answer_that_was_stopped_before_it_cited_has_no_list_in_its_text(
    house: ServedHouse,
) -> None:
    session = house.begin(mode="qa")
    house.vendor.says("The north quay has a number of berths, which is nine [^1].")
    house.vendor.hold(after=4)
    turn = house.post(session, "/turns", {"text": "How many berths?"})["turn"]
    house.vendor.wait_until_held()
    house.read_text(session, turn)
    house.client.delete(house.place(session, f"/turns/{turn}"))
    house.watch(session, turn)
    answer = house.rows(session)[-1]
    assert answer["interrupted"]
    assert "Sources" not in answer["text"]
    assert answer["sources"]
    assert (answer["usage"], answer["cost"]) == (None, None)
