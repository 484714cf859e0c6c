"""Turns over HTTP: they belong to no connection, and nothing of them is lost or told twice."""

import pytest
from tests.apps.web.served_house import ServedHouse, kinds, refused, text_of

LONG = " ".join(f"word{number}" for number in range(12))


def test_a_question_is_answered_and_its_events_are_numbered(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says("At noon.")
    events = house.ask(session, "When is low tide?")
    assert kinds(events)[0] == "request"
    assert kinds(events)[-2:] == ["usage", "end"]
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert text_of(events) == events[-1].data["answer"] == "At noon."
    question, answer = house.rows(session)
    assert (question["kind"], question["text"]) == ("question", "When is low tide?")
    assert (answer["kind"], answer["text"]) == ("answer", "At noon.")
    assert answer["target"] == "openai:gpt-5"
    assert answer["cost"] is not None
    assert answer["usage"]["input"] > 0
    assert answer["total_s"] >= answer["first_s"] >= 0


def test_a_watcher_that_comes_back_gets_every_event_exactly_once(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says(LONG)
    house.vendor.hold(after=4)
    turn = house.post(session, "/turns", {"text": "Tell me."})["turn"]
    house.vendor.wait_until_held()
    early = house.read_text(session, turn)
    house.vendor.release()
    late = house.watch(session, turn, after=early[-1].number or 0)
    whole = house.watch(session, turn)
    assert [e.number for e in early + late] == [e.number for e in whole]
    assert text_of(early + late) == text_of(whole) == LONG


def test_closing_every_connection_stops_nothing(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says(LONG)
    house.vendor.hold(after=2)
    turn = house.post(session, "/turns", {"text": "Tell me."})["turn"]
    house.vendor.wait_until_held()
    house.client.close()
    house.client = house.connect()
    head = house.get(session)
    assert (head["state"], head["turn"]["id"]) == ("working", turn)
    assert head["turn"]["is_running"]
    house.vendor.release()
    assert house.watch(session, turn)[-1].data["answer"] == LONG


def test_two_watchers_see_the_same(house: ServedHouse) -> None:
    session = house.begin()
    turn = house.post(session, "/turns", {"text": "Hello"})["turn"]
    one = house.watch(session, turn)
    house.client = house.connect()
    other = house.watch(session, turn)
    assert [(e.number, e.event, e.data) for e in one] == [
        (e.number, e.event, e.data) for e in other
    ]


def test_a_turn_is_stopped_and_keeps_what_came(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says(LONG)
    house.vendor.hold(after=5)
    turn = house.post(session, "/turns", {"text": "Tell me."})["turn"]
    house.vendor.wait_until_held()
    # What the vendor has sent may be on its way still.
    house.read_text(session, turn)
    place = house.place(session, f"/turns/{turn}")
    assert house.client.delete(place).json() == {"aborted": True}
    events = house.watch(session, turn)
    assert events[-1].data["ending"] == "aborted"
    answer = house.rows(session)[-1]
    assert answer["interrupted"]
    assert answer["text"]
    assert LONG.startswith(answer["text"])
    assert house.client.delete(place).json() == {"aborted": False}
    # It is over: the next question can be asked.
    house.vendor.release()
    house.vendor.says("Yes.")
    assert house.ask(session, "Again?")[-1].data["answer"] == "Yes."


def test_a_second_turn_at_once_is_refused(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.hold(after=1)
    turn = house.post(session, "/turns", {"text": "One"})["turn"]
    house.vendor.wait_until_held()
    for rest, body in (
        ("/turns", {"text": "Two"}),
        ("/regenerate", {}),
        ("/compact", {}),
        ("/resume", {}),
        ("/items/pin", {"what": "plan.md"}),
    ):
        answer = house.client.post(house.place(session, rest), json=body)
        assert refused(answer) == (409, "turn_state")
    house.vendor.release()
    assert house.watch(session, turn)[-1].data["ending"] == "answered"


def test_the_same_key_begins_the_same_turn(house: ServedHouse) -> None:
    session = house.begin()
    headers = {"idempotency-key": "k-1"}
    place = house.place(session, "/turns")
    turns = {
        house.client.post(place, json={"text": "Hello"}, headers=headers).json()["turn"]
        for _ in range(3)
    }
    (turn,) = turns
    house.watch(session, turn)
    again = house.client.post(place, json={"text": "Hello"}, headers=headers).json()["turn"]
    assert again == turn
    assert len(house.rows(session)) == 2


def test_a_blank_question_is_refused_with_its_field(house: ServedHouse) -> None:
    session = house.begin()
    answer = house.client.post(house.place(session, "/turns"), json={"text": "  "})
    assert refused(answer) == (422, "invalid")
    assert answer.json()["error"]["fields"] == ["text"]


@pytest.mark.parametrize("body", [{"txt": "a"}, {"text": 3}, {}, {"text": "a", "target": []}])
def test_a_body_of_another_form_is_refused(house: ServedHouse, body: dict[str, object]) -> None:
    session = house.begin()
    answer = house.client.post(house.place(session, "/turns"), json=body)
    assert refused(answer) == (422, "invalid")


def test_a_target_that_is_not_known_begins_no_turn(house: ServedHouse) -> None:
    session = house.begin()
    answer = house.client.post(
        house.place(session, "/turns"), json={"text": "Hello", "target": "nobody:gpt"}
    )
    assert refused(answer) == (400, "unknown_target")
    assert house.rows(session) == []


def test_what_a_provider_refuses_ends_the_turn_with_its_code(
    house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    session = house.begin(target="anthropic:claude-opus-5")
    events = house.ask(session, "Hello")
    assert (events[-1].event, events[-1].data["code"]) == ("failed", "key_missing")
    assert house.get(session)["state"] in ("idle", "interrupted")


def test_a_question_is_asked_otherwise_and_both_stay(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says("At noon.", "At six.")
    house.ask(session, "Low tide?")
    question = house.rows(session)[0]["id"]
    body = {"question": question, "text": "High tide?"}
    turn = house.post(session, "/edit", body)["turn"]
    assert house.watch(session, turn)[-1].data["answer"] == "At six."
    rows = house.rows(session)
    assert [row["text"] for row in rows] == ["High tide?", "At six."]
    assert (len(rows[0]["siblings"]), rows[0]["place"]) == (2, 1)
    assert rows[0]["siblings"][0] == question
    assert house.get(session)["other_rows"] == 2
    assert refused(
        house.client.post(house.place(session, "/edit"), json={"question": "zzz", "text": "What?"})
    ) == (404, "unknown_entry")


def test_an_answer_is_asked_for_again_beside_the_first(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says("At noon.", "Noon.")
    house.ask(session, "Low tide?")
    first = house.rows(session)[1]["id"]
    turn = house.post(session, "/regenerate")["turn"]
    house.watch(session, turn)
    question, answer = house.rows(session)
    assert answer["text"] == "Noon."
    # The question is the same one, though its request was made twice.
    assert len(question["siblings"]) == 1
    assert (answer["siblings"], answer["place"]) == ([first, answer["id"]], 1)
    # And back to the first one, at the end of its branch.
    house.post(session, "/navigate", {"entry": first, "end": True})
    assert [row["text"] for row in house.rows(session)] == ["Low tide?", "At noon."]
    assert house.rows(session)[1]["place"] == 0


def test_what_is_said_meanwhile_is_answered_too(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.says("One.", "Two.")
    house.vendor.hold(after=1)
    turn = house.post(session, "/turns", {"text": "First"})["turn"]
    house.vendor.wait_until_held()
    body = {"text": "And more?", "deliver": "follow_up"}
    assert house.post(session, "/messages", body) == {"running": True}
    house.vendor.release()
    assert house.watch(session, turn)[-1].data["answer"] == "Two."
    texts = [row["text"] for row in house.rows(session)]
    assert texts == ["First", "One.", "And more?", "Two."]


def test_history_is_compacted_on_demand(house: ServedHouse) -> None:
    session = house.begin(settings={"compaction_keep": 1})
    for number in range(4):
        house.ask(session, f"Question {number}: {LONG * 20}")
    turn = house.post(session, "/compact")["turn"]
    events = house.watch(session, turn)
    assert kinds(events) == ["compaction", "end"]
    assert events[0].data["changed"], events[0].data
    (row,) = [row for row in house.rows(session) if row["kind"] == "compaction"]
    assert row["compaction"]["summary"] == row["text"]
    assert row["compaction"]["messages"] > 0


def test_a_turn_that_nobody_knows_is_not_found(house: ServedHouse) -> None:
    session = house.begin()
    for method in ("GET", "DELETE"):
        rest = "/turns/nothing/events" if method == "GET" else "/turns/nothing"
        answer = house.client.request(method, house.place(session, rest))
        assert refused(answer) == (404, "unknown_turn")


def test_watchers_of_a_workspace_hear_which_sessions_work(house: ServedHouse) -> None:
    session = house.begin()
    other = house.connect()
    with house.client.stream("GET", house.place(rest="/events")) as stream:
        lines = stream.iter_lines()
        other.post(house.place(session, "/turns"), json={"text": "Hello"})
        states = []
        for line in lines:
            if line.startswith("data:") and session in line:
                states.append(line.partition('"state":"')[2].partition('"')[0])
            if states[-1:] == ["idle"] and "working" in states:
                break
    assert states[-2:] == ["working", "idle"]
