"""The map of a session: questions, answers, branches, labels, and requests nobody answered."""

from itertools import pairwise

from tests.apps.web.served_house import Json, ServedHouse, told
from tests.browser.vendor import Vendor

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

LOOK = EmulatedCall(name="read", arguments={"path": "plan.md"})


def nodes_of(house: ServedHouse, session: str) -> list[Json]:
    nodes: list[Json] = house.get(session, "/tree")["nodes"]
    return nodes


def test_questions_and_answers_hang_below_one_another(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "When?")
    house.ask(session, "And Friday?")
    tree = house.get(session, "/tree")
    nodes = tree["nodes"]
    assert [node["kind"] for node in nodes] == [
        "start", "question", "answer", "question", "answer",
    ]  # fmt: skip
    for above, below in pairwise(nodes):
        assert below["parent"] == above["id"]
    assert [node["depth"] for node in nodes] == [0, 1, 2, 3, 4]
    assert (tree["node"], tree["branches"], tree["other_messages"]) == (nodes[-1]["id"], 1, 0)
    assert nodes[-1]["is_leaf"]
    assert nodes[2]["tokens"] > 0
    assert nodes[2]["request"]
    # A label on what is no node of its own stands at the node before it.
    leaf = tree["leaf"]
    assert leaf != nodes[-1]["id"]
    told(house.client.put(house.place(session, f"/labels/{leaf}"), json={"text": "here"}))
    assert nodes_of(house, session)[-1]["label"] == "here"


def test_a_question_asked_otherwise_is_a_branch_with_its_label(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "When?")
    house.ask(session, "And Friday?")
    question = nodes_of(house, session)[3]["id"]
    turn = house.post(session, "/edit", {"question": question, "text": "And Sunday?"})
    house.watch(session, turn["turn"])
    place = house.place(session, f"/labels/{question}")
    assert house.client.put(place, json={"text": "weekend"}).status_code < 300
    tree = house.get(session, "/tree")
    by_text = {node["text"]: node for node in tree["nodes"]}
    friday, sunday = by_text["And Friday?"], by_text["And Sunday?"]
    assert friday["parent"] == sunday["parent"]
    assert (friday["active"], sunday["active"]) == (False, True)
    assert friday["label"] == "weekend"
    assert (tree["branches"], tree["other_messages"]) == (2, 2)
    above = next(node for node in tree["nodes"] if node["id"] == friday["parent"])
    assert above["children"] == 2


def test_the_steps_of_a_turn_are_one_answer(house: ServedHouse, vendor: Vendor) -> None:
    session = house.begin(files=True, settings={"ask_before_tools": "never"})
    vendor.says(EmulatedAnswer(calls=(LOOK,)), EmulatedAnswer(calls=(LOOK, LOOK)), "In May.")
    house.ask(session, "When does the pier open?")
    *_, answer = nodes_of(house, session)
    assert [node["kind"] for node in nodes_of(house, session)] == ["start", "question", "answer"]
    assert (answer["text"], answer["calls"]) == ("In May.", 3)


def test_a_request_that_was_never_answered_can_be_resumed_from_the_map(
    house: ServedHouse, vendor: Vendor
) -> None:
    session = house.begin()
    vendor.says("word " * 40)
    vendor.hold(0)
    house.post(session, "/turns", {"text": "When?"})
    vendor.wait_until_held()
    unanswered = nodes_of(house, session)[-1]
    assert (unanswered["kind"], unanswered["can_resume"]) == ("unanswered", True)
    assert unanswered["is_leaf"]
    vendor.release()


def test_a_compaction_stands_in_the_map_with_what_it_came_to(house: ServedHouse) -> None:
    session = house.begin()
    for number in range(4):
        house.ask(session, f"Question {number}: " + "what of the tide? " * 2_000)
    turn = house.post(session, "/compact")
    house.watch(session, turn["turn"])
    house.ask(session, "And now?")
    compaction = next(n for n in nodes_of(house, session) if n["kind"] == "compaction")
    assert compaction["tokens_before"] > compaction["tokens_after"] > 0
    assert compaction["text"]
