"""Calls that wait for a person: in the journal, whoever decides, whenever, from wherever."""

from typing import Any

import pytest
from tests.apps.web.served_house import ServedHouse, kinds, refused

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

WRITE = EmulatedCall(name="write", arguments={"path": "new.md", "content": "Noon.\n"})
MOVE = EmulatedCall(name="mv", arguments={"source": "plan.md", "target": "old.md"})


def wait_for_person(house: ServedHouse, *calls: EmulatedCall, **options: Any) -> str:
    """A session whose turn has ended because calls wait."""
    session = house.begin(files=True, **options)
    house.vendor.says(EmulatedAnswer(calls=calls or (WRITE,)))
    events = house.ask(session, "Write it down.")
    assert events[-1].data["ending"] == "waiting"
    assert kinds(events).count("approval") == len(calls or (WRITE,))
    return session


def decide(house: ServedHouse, session: str, call: str, decision: str) -> Any:
    return house.client.post(
        house.place(session, f"/calls/{call}/decision"), json={"decision": decision}
    )


def test_a_call_is_allowed_by_another_connection_and_the_turn_goes_on(house: ServedHouse) -> None:
    session = wait_for_person(house)
    house.client = house.connect()
    head = house.get(session)
    assert head["state"] == "waiting"
    (waiting,) = head["waiting"]
    assert waiting["name"] == "write"
    assert '"new.md"' in waiting["arguments"]
    assert waiting["about"]
    house.vendor.says("Written.")
    kept = decide(house, session, waiting["id"], "allow_once").json()
    assert (kept["decision"], kept["waiting"]) == ("allow_once", [])
    events = house.watch(session, kept["turn"])
    assert events[-1].data["answer"] == "Written."
    assert (house.folder / "new.md").read_text("utf-8") == "Noon.\n"
    first, last = house.rows(session)[1:]
    (call,) = first["calls"]
    assert (call["state"], call["decision"]) == ("done", "allow_once")
    assert last["text"] == "Written."
    assert house.get(session)["state"] == "idle"


def test_a_denied_call_is_not_run_and_the_model_is_told(house: ServedHouse) -> None:
    session = wait_for_person(house)
    (waiting,) = house.get(session)["waiting"]
    house.vendor.says("Then not.")
    turn = decide(house, session, waiting["id"], "deny").json()["turn"]
    assert house.watch(session, turn)[-1].data["answer"] == "Then not."
    assert not (house.folder / "new.md").exists()
    assert house.rows(session)[1]["calls"][0]["state"] == "denied"


def test_the_turn_is_taken_up_when_the_last_of_several_calls_is_decided(house: ServedHouse) -> None:
    session = wait_for_person(house, WRITE, MOVE)
    one, two = (call["id"] for call in house.get(session)["waiting"])
    kept = decide(house, session, one, "allow_once").json()
    assert (kept["waiting"], kept["turn"]) == ([two], None)
    assert house.get(session)["state"] == "waiting"
    assert refused(decide(house, session, one, "deny")) == (409, "turn_state")
    house.vendor.says("Done.")
    turn = decide(house, session, two, "deny").json()["turn"]
    assert house.watch(session, turn)[-1].data["answer"] == "Done."
    states = [call["state"] for call in house.rows(session)[1]["calls"]]
    assert states == ["done", "denied"]
    assert refused(decide(house, session, two, "deny")) == (404, "unknown_call")


def test_a_tool_that_is_allowed_for_the_session_is_not_asked_about_again(
    house: ServedHouse,
) -> None:
    twice = EmulatedCall(name="write", arguments={"path": "two.md", "content": "Two.\n"})
    session = wait_for_person(house, WRITE, twice)
    one, _ = (call["id"] for call in house.get(session)["waiting"])
    house.vendor.says("Both.")
    kept = decide(house, session, one, "allow_session").json()
    # The other call is of the same tool.
    assert kept["waiting"] == []
    assert house.watch(session, kept["turn"])[-1].data["answer"] == "Both."
    assert (house.folder / "two.md").exists()


@pytest.mark.parametrize("decision", ["allow_once", "deny"])
def test_a_call_waits_across_a_restart_of_the_server(house: ServedHouse, decision: str) -> None:
    session = wait_for_person(house)
    house.restart()
    (card,) = house.get(rest="/sessions")["sessions"]
    assert card["state"] == "waiting"
    head = house.get(session)
    assert (head["state"], head["interrupted"]) == ("waiting", False)
    (waiting,) = head["waiting"]
    house.vendor.says("As you wish.")
    turn = decide(house, session, waiting["id"], decision).json()["turn"]
    assert house.watch(session, turn)[-1].data["answer"] == "As you wish."
    assert (house.folder / "new.md").exists() == (decision == "allow_once")


def test_asking_something_else_leaves_the_calls(house: ServedHouse) -> None:
    session = wait_for_person(house)
    house.vendor.says("Fine.")
    assert house.ask(session, "Never mind.")[-1].data["answer"] == "Fine."
    assert house.get(session)["waiting"] == []
    assert not (house.folder / "new.md").exists()


def test_calls_of_a_plan_are_decided_while_it_runs(house: ServedHouse) -> None:
    session = house.begin(mode="plan", files=True)
    house.vendor.says(EmulatedAnswer(calls=(WRITE,)), "Written as planned.")
    turn = house.post(session, "/turns", {"text": "Write it down."})["turn"]
    for event in house.follow(session, turn):
        if event.event == "approval":
            break
    head = house.get(session)
    assert head["state"] == "waiting"
    (waiting,) = head["waiting"]
    assert decide(house, session, waiting["id"], "allow_once").json()["turn"] is None
    events = house.watch(session, turn)
    assert events[-1].event == "end"
    assert (house.folder / "new.md").exists()
