"""The request to come: what is shown while a person types is what is then sent."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.apps.web.served_house import ServedHouse, refused

from lamina.core.audit.requests import recorded_digests
from lamina.core.values.entry import RequestEntry


def digests(preview: dict[str, Any]) -> list[str]:
    return [segment["digest"] for segment in preview["segments"]]


def sent_digests(house: ServedHouse, session: str) -> list[str | None]:
    """Those of the last request in the journal."""
    desk = house.server.desk
    journal = house.portal.call(desk.read_journal, house.workspace, session)
    requests = [e for e in journal.entries.values() if isinstance(e, RequestEntry)]
    return list(recorded_digests(requests[-1], journal.entries))


def entries(house: ServedHouse, session: str) -> int:
    journal = house.portal.call(house.server.desk.read_journal, house.workspace, session)
    return len(journal.entries)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"files": True},
    {"mode": "qa"},
    {"agent": "clerk"},
    {"system": "Be brief.", "settings": {"temperature": 0.5}},
]


def write_agent(folder: Path) -> None:
    files = {
        "clerk/agent.yaml": "name: clerk\n",
        "clerk/persona.md": "You are the clerk.\n",
        "clerk/rules/plain.md": "---\ninclude: always\n---\nNo foreign words.\n",
        "clerk/rules/quays.md": "---\ninclude: agent\n---\nName the quay when you count berths.\n",
    }
    for path, text in files.items():
        place = folder / ".lamina" / "agents" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_shown_is_what_is_then_sent_digest_for_digest(
    house: ServedHouse, options: dict[str, Any]
) -> None:
    write_agent(house.folder)
    session = house.begin(**options)
    questions: list[dict[str, Any]] = [
        {"text": "How many berths has the north quay?", "attach": ["plan.md"]},
        {"text": "And @sea/tides.md says what?"},
        {"text": "In short, please.", "essential": ["plan.md"]},
    ]
    for question in questions:
        before = entries(house, session)
        # As a person types: something else first, then less, then what is sent.
        house.post(session, "/preview", {"text": question["text"][:9]})
        house.post(session, "/preview", {"text": "", "attach": ["sea/"]})
        preview = house.post(session, "/preview", question)
        assert preview["refusal"] == ""
        assert entries(house, session) == before
        house.ask(session, **question)
        assert digests(preview) == sent_digests(house, session)
        answer = house.rows(session)[-1]
        assert preview["tokens"] > 0
        assert preview["cost_range"]["low"] <= answer["cost"] <= preview["cost_range"]["high"]


def test_the_first_message_is_shown_before_there_is_a_session(house: ServedHouse) -> None:
    write_agent(house.folder)
    options = {"agent": "clerk", "files": True}
    question: dict[str, Any] = {"text": "How many berths?", "attach": ["plan.md"]}
    preview = house.post("", "/preview", options | question)
    assert house.get(rest="/sessions")["sessions"] == []
    session = house.begin(**options)
    house.ask(session, **question)
    assert digests(preview) == sent_digests(house, session)


def test_what_changes_the_session_changes_what_is_shown(house: ServedHouse) -> None:
    write_agent(house.folder)
    session = house.begin(agent="clerk")
    house.ask(session, "Hello")
    question = {"text": "How many?"}
    before = house.post(session, "/preview", question)
    house.post(session, "/items/pin", {"what": "plan.md"})
    pinned = house.post(session, "/preview", question)
    assert [item["item"] for item in pinned["items"] if item.get("pinned")] == ["note:plan.md"]
    assert pinned["tokens"] > before["tokens"]
    # A file that was edited meanwhile is shown as it is.
    (house.folder / "plan.md").write_text("# Plan\n\nThe pier opens in June, at last.\n", "utf-8")
    edited = house.post(session, "/preview", question)
    assert digests(edited) != digests(pinned)
    house.ask(session, **question)
    assert digests(edited) == sent_digests(house, session)
    assert edited["agreement"]["tokens"] > 0


def test_what_does_not_fit_is_refused_before_it_is_sent(house: ServedHouse) -> None:
    session = house.begin(settings={"window": 2000})
    (house.folder / "long.md").write_text("word " * 5000, "utf-8")
    preview = house.post(session, "/preview", {"text": "Hi", "essential": ["long.md"]})
    assert preview["refusal"]
    assert preview["digest"] == ""
    preview = house.post(session, "/preview", {"text": "Hi", "attach": ["long.md"]})
    assert preview["refusal"] == ""
    assert [left["what"] for left in preview["left_out"]] == ["note:long.md"]


def test_a_limit_on_spending_is_said_before_anything_is_sent(house: ServedHouse) -> None:
    session = house.begin(settings={"spend_session": 0.000001})
    preview = house.post(session, "/preview", {"text": "Hello"})
    assert "limit" in preview["refusal"]
    events = house.ask(session, "Hello")
    assert (events[-1].event, events[-1].data["code"]) == ("failed", "spend_limit")


def test_another_model_is_weighed_without_being_chosen(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "Hello")
    other = house.post(session, "/preview", {"text": "And?", "target": "openai:gpt-4o"})
    assert other["target"] == "openai:gpt-4o"
    assert [boundary["kind"] for boundary in other["boundaries"]] == ["model_change"]
    own = house.post(session, "/preview", {"text": "And?"})
    assert (own["target"], own["boundaries"]) == ("openai:gpt-5", [])
    house.ask(session, "And?")
    assert digests(own) == sent_digests(house, session)


def test_of_a_planned_question_the_request_for_the_plan_is_shown(house: ServedHouse) -> None:
    session = house.begin(mode="plan", files=True)
    preview = house.post(session, "/preview", {"text": "Look it up."})
    assert preview["only_plan"]
    assert preview["tokens"] > 0


def test_a_session_that_is_not_there_has_no_preview(house: ServedHouse) -> None:
    answer = house.client.post(house.place("nothing", "/preview"), json={"text": "x"})
    assert refused(answer) == (404, "unknown_session")


def test_a_preview_is_given_while_a_turn_runs(house: ServedHouse) -> None:
    session = house.begin()
    house.vendor.hold(after=1)
    turn = house.post(session, "/turns", {"text": "Hello"})["turn"]
    house.vendor.wait_until_held()
    assert house.post(session, "/preview", {"text": "And then?"})["tokens"] > 0
    house.vendor.release()
    assert house.watch(session, turn)[-1].data["ending"] == "answered"


def test_the_journal_is_whole_after_previews(house: ServedHouse) -> None:
    session = house.begin()
    for number in range(5):
        house.post(session, "/preview", {"text": f"Hello {number}"})
        house.ask(session, f"Hello {number}")
    house.server.desk.workspace(house.workspace)
    from tests.apps.cli.commands import LAMINA

    command = [str(LAMINA), "verify", session, "--workspace", str(house.folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
