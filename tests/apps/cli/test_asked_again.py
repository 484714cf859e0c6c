"""A question asked otherwise and an answer asked for again, from the chat, over RPC, with `ask`."""

from pathlib import Path

import pytest
from tests.apps.cli.chats import answer, talk
from tests.apps.cli.inside import error
from tests.apps.cli.questions import Desk
from tests.apps.cli.rpc_client import serving
from tests.fakes.book import OTHER
from tests.fakes.providers import ProviderFake, saying
from tests.fakes.sessions import run

from lamina.apps.cli.ask import AskPlace
from lamina.errors import UsageError

PLAN = {"plan.md": "The pier opens in May."}


def asked(provider: ProviderFake, index: int = -1) -> str:
    return str(provider.bodies[index]["messages"][-1]["content"])


# -- the chat ------------------------------------------------------------------------------------


def test_a_question_is_asked_otherwise_with_what_was_attached_to_it(notes: Path) -> None:
    provider = ProviderFake(answer("May."), answer("Then."), answer("In May 2027."))
    acts = "When, as @plan.md says?", "And then?", "/edit 000002 Which year?"
    talked = talk(notes, *acts, provider=provider)
    texts = [message.text for message in talked.session.envelope.cached]
    assert texts == ["Which year?", "In May 2027."]
    # The new text does not mention it any more.
    assert asked(provider) == "Which year?"


def test_what_stays_attached_goes_along_and_what_was_detached_does_not(notes: Path) -> None:
    (notes / "b.md").write_text("BBB\n", "utf-8")
    provider = ProviderFake()
    acts = (
        "/attach plan.md b.md", "When?", "/detach b.md", "/edit last Which year?", "/regenerate",
    )  # fmt: skip
    talk(notes, *acts, provider=provider)
    assert "BBB" in asked(provider, 0)
    assert "The pier opens in May." in asked(provider, 1)
    assert "BBB" not in asked(provider, 1)
    assert provider.bodies[2]["messages"] == provider.bodies[1]["messages"]


def test_without_a_text_the_question_is_offered_to_be_edited(notes: Path) -> None:
    talked = talk(notes, "When?", "/edit", replies=[answer("May.")])
    assert "/edit [ENTRY] [TEXT]; the question was: When?" in talked.err
    assert talked.chat.exit_code == 1


def test_a_text_alone_is_asked_instead_of_the_last_question(notes: Path) -> None:
    provider = ProviderFake()
    talk(notes, "When?", "/edit Which year is it?", provider=provider)
    assert asked(provider, 1) == "Which year is it?"


def test_an_answer_is_asked_for_again_and_both_stand_in_the_tree(notes: Path) -> None:
    replies = [answer("May."), answer("In May."), answer("It opens in May.")]
    talked = talk(notes, "When?", "/regenerate", "/retry last", "/tree", replies=replies)
    assert talked.out.startswith("May.\nIn May.\nIt opens in May.\n")
    assert talked.out.count("When?") == 3
    assert [m.text for m in talked.session.envelope.cached] == ["When?", "It opens in May."]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/edit ffffff Q", "'ffffff' is not a question of session"),
        ("/edit", "there are no questions on this path yet"),
        ("/regenerate", "nothing to repeat"),
        ("/regenerate a b", "usage: /regenerate"),
        ("/regenerate nobody:here", "nobody:here"),
    ],
)
def test_what_cannot_be_asked_again_is_said(notes: Path, line: str, problem: str) -> None:
    assert problem in talk(notes, line).err


# -- RPC -----------------------------------------------------------------------------------------


def test_a_program_edits_and_regenerates() -> None:
    async def body() -> None:
        scripts = saying("May."), saying("June."), saying("2027."), saying("In 2027.")
        async with serving(*scripts, notes=PLAN) as client:
            await client.call("prompt", text="When?", attach=["plan.md"])
            await client.call("prompt", text="And then?")
            tree = await client.call("tree")
            question = next(e["id"] for e in tree["entries"] if e["summary"] == "When?")
            result = await client.call("edit", question=question, text="Which year?")
            assert (result["answer"], result["ending"]) == ("2027.", "answered")
            assert "The pier opens in May." in asked(client.provider)
            result = await client.call("regenerate", target=OTHER.name)
            assert result["answer"] == "In 2027."
            context = await client.call("get_context")
            assert context["target"] == OTHER.name
            await client.call("edit", question=question, text="Which?", attach=[])
            assert asked(client.provider) == "Which?"
            tree = await client.call("tree")
            summaries = [e["summary"] for e in tree["entries"] if e["active"]]
            assert "Which?" in summaries
            assert "And then?" not in summaries

    run(body())


def test_a_program_is_told_what_cannot_be_asked_again() -> None:
    async def body() -> None:
        async with serving(notes=PLAN) as client:
            blank = await client.refusal("edit", question="000002", text=" ")
            assert blank["message"] == "edit: `text` is blank"
            refused = await client.refusal("regenerate")
            assert refused["data"]["code"] == "turn_state"
            refused = await client.refusal("edit", question="nope", text="Q")
            assert "no entry 'nope'" in refused["message"]

    run(body())


# -- ask -----------------------------------------------------------------------------------------


def test_ask_puts_a_question_in_the_place_of_another() -> None:
    async def body() -> None:
        scripts = saying("May."), saying("2027."), saying("In 2027.")
        desk = Desk(*scripts, notes=PLAN)
        await desk.ask("When?", attach=("plan.md",))
        assert await desk.ask("Which year?", place=AskPlace(edit="last")) == 0
        assert desk.said == "2027.\n"
        assert "The pier opens in May." in asked(desk.provider)
        assert await desk.ask(None, place=AskPlace(regenerate="last")) == 0
        assert desk.kept == [("user", "Which year?"), ("assistant", "In 2027.")]
        with pytest.raises(
            UsageError, match="not a question of session talk; `lamina log talk --tr"
        ):
            await desk.ask("Q", place=AskPlace(edit="ffff"))

    run(body())


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "Q", "--edit", "last"),
        ("ask", "--regenerate", "last"),
        ("ask", "-s", "x", "--regenerate", "last", "Q"),
        ("ask", "-s", "x", "--resume", "--edit", "last"),
    ],
)
def test_ask_refuses_what_does_not_go_together(words: tuple[str, ...], tmp_path: Path) -> None:
    problem = error(*words, cwd=tmp_path, code=2)
    assert "--session" in problem or "cannot be combined" in problem
