"""`lamina why`: what a question was answered with, and why."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.apps.cli.inside import error, output
from tests.fakes.clock import FakeClock
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying
from tests.fakes.selection import SelectorFake, guide, open_guided
from tests.fakes.tools import ToolHostFake, tool

from lamina import Session, ToolDefinition, open_session
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.session_tree import questions_of
from lamina.apps.wiring import default_store
from lamina.core.journal import State
from lamina.core.values.item import Attachment, ItemId
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import Settings
from lamina.engine.runners.runner import AgentRunner

TARGET = "openai:gpt-4o"
READ, WRITE = ItemId("tool:fake/read"), ItemId("tool:fake/write")
EVIL = "evil\x1b[2J\u202e[red]x"


def guided() -> SelectorFake:
    """An agent with rules and references of every mode."""
    return SelectorFake(
        guide("rule", "house-style", level=10, text="# Answer in short sentences.\n\nAlways."),
        guide("rule", "berths", "agent", level=10, text="Name the berth."),
        guide("rule", "tone", "manual", level=5, text="Be kind."),
        guide("reference", "glossary", text="Pier: a place to land."),
        guide("reference", "tides", "agent", level=700, text="\n\n## Tides\n\nHigh at noon."),
        finds={
            "berth": [
                SelectedItem(item=ItemId("rule:berths"), score=0.7349),
                SelectedItem(item=READ, score=0.8),
            ],
            "tide": [
                SelectedItem(
                    item=ItemId("reference:tides"), score=0.66, origin="expansion",
                    source="reference:glossary",
                ),
                SelectedItem(item=WRITE, score=0.5),
            ],
        },
    )  # fmt: skip


def play(
    notes: Path, body: Callable[[Session, AgentRunner], Awaitable[None]], **given: object
) -> None:
    """A session of an agent whose tools are found by search, kept as `lamina chat` keeps it."""

    async def run() -> None:
        session = await open_guided(
            given.pop("selector", None) or guided(),  # type: ignore[arg-type]
            "pier",
            store=default_store(notes),
            book=load_book(),
            clock=FakeClock(),
            workspace=FolderWorkspace(notes),
            settings=Settings(target=TARGET, **{"whole_pool_tokens": 0, **given}),  # type: ignore[arg-type]
        )
        asked = tool("ask", description="Asks somebody.\nSlowly.")
        found = [replace(tool(name), include="agent") for name in ("read", "write")]
        provider = ProviderFake(saying("1"), calling(("c", "ask", {})), saying("2"), saying("3"))
        host = ToolHostFake(asked, *found)
        async with AgentRunner(session, ProvidersFake(provider), host) as runner:
            await body(session, runner)

    anyio.run(run)


async def two_questions(session: Session, runner: AgentRunner) -> None:
    await session.add("rule:tone")
    await runner.run("Which berth is free?", attach=["plan.md", "gone.md"])
    await runner.run("And when is the tide high?")


def why(notes: Path, *arguments: str) -> str:
    return output("why", "pier", *arguments, cwd=notes)


def test_three_columns_show_priorities_modes_scores_and_what_each_is(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(notes, two_questions)
    monkeypatch.setenv("COLUMNS", "120")
    assert why(notes, "1") == snapshot("""\
question 1 of 2: Which berth is free?
request 00000b to openai:gpt-4o

Rules (3)                               References (1)                          Tools (4)
005 • tone [Manual]                     500 • glossary [Always]                 • read_result [Always]
      Be kind.                                Pier: a place to land.                  Reads what was left out of a long
010 • berths [Agent - 0.73]                                                           tool result, by the handle that
      Name the berth.                                                                 stands where it was cut. Gives
      search                                                                          numbered lines, and sa…
010 • house-style [Always]                                                      • use_tool [Always]
      Answer in short sentences.                                                      Calls a tool that is described in
                                                                                      the conversation (in
                                                                                      <tool_context>) and is not in this
                                                                                      list.
                                                                                fake. • ask [Always]
                                                                                      Asks somebody.
                                                                                fake. • read [Agent - 0.80]
                                                                                      Does read.
                                                                                      search

item     placed in              tokens  priority  included  why
plan.md  this message, in full      79  5         manual    attached to this message

left out         reason        detail
note:gone.md     missing       gone.md does not exist in the workspace
reference:tides  ranked lower  reference:tides: others fit better
""")


def test_a_narrow_screen_shows_them_one_under_the_other(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(notes, two_questions)
    monkeypatch.setenv("COLUMNS", "80")
    shown = why(notes)
    assert shown == snapshot("""\
question 2 of 2: And when is the tide high?
request 000012 to openai:gpt-4o

Rules (2)
005 • tone [Manual]
      Be kind.
010 • house-style [Always]
      Answer in short sentences.

References (2)
500 • glossary [Always]
      Pier: a place to land.
700 • tides [Agent - 0.66]
      Tides
      expansion from reference:glossary

Tools (5)
• read_result [Always]
      Reads what was left out of a long tool result, by the handle that stands
      where it was cut. Gives numbered lines, and sa…
• use_tool [Always]
      Calls a tool that is described in the conversation (in <tool_context>) and
      is not in this list.
fake. • ask [Always]
      Asks somebody.
fake. • read [Agent]
      Does read.
      kept from an earlier question
fake. • write [Agent - 0.50]
      Does write.
      search

left out     reason        detail
rule:berths  ranked lower  rule:berths: others fit better
""")
    assert max(map(len, shown.splitlines())) <= 80


def test_machines_get_every_field(notes: Path) -> None:
    play(notes, two_questions)
    shown = json.loads(why(notes, "2", "--json"))
    assert (shown["number"], shown["questions"], shown["target"]) == (2, 2, TARGET)
    assert shown["question"] == "And when is the tide high?"
    names = {
        kind: [(row["name"], row["include"], row["score"]) for row in shown[kind]]
        for kind in ("rules", "references", "tools")
    }
    assert names == snapshot(
        {
            "rules": [("tone", "manual", None), ("house-style", "always", None)],
            "references": [("glossary", "always", None), ("tides", "agent", 0.66)],
            "tools": [
                ("read_result", "always", None),
                ("use_tool", "always", None),
                ("ask", "always", None),
                ("read", "agent", None),
                ("write", "agent", 0.5),
            ],
        }
    )
    assert shown["references"][1] == snapshot(
        {
            "item": "reference:tides",
            "name": "tides",
            "include": "agent",
            "placement": "message",
            "tokens": 27,
            "level": 700,
            "server": "",
            "about": "Tides",
            "score": 0.66,
            "origin": "expansion",
            "source": "reference:glossary",
            "notes": [],
        }
    )
    assert [(each["what"], each["reason"]) for each in shown["left_out"]] == snapshot(
        [("rule:berths", "ranked_lower")]
    )


def test_a_tool_that_is_only_described_says_how_it_is_called(notes: Path) -> None:
    play(notes, two_questions, tool_joins=0)
    rows = json.loads(why(notes, "--json"))["tools"]
    write = next(row for row in rows if row["name"] == "write")
    assert (write["placement"], write["server"], write["score"]) == ("message", "fake", 0.5)
    assert write["notes"] == ["described in the conversation, called through use_tool"]
    read = next(row for row in rows if row["name"] == "read")
    assert (read["placement"], read["notes"]) == ("list", ["kept from an earlier question"])


def test_what_was_deleted_is_missing_and_not_among_what_was_used(notes: Path) -> None:
    selector = guided()

    async def body(session: Session, runner: AgentRunner) -> None:
        await session.add("rule:tone")
        await runner.run("Hello?")
        selector.source.listed = [each for each in selector.source.listed if each.name != "tone"]
        await runner.run("Still?")

    play(notes, body, selector=selector)
    before, after = (json.loads(why(notes, number, "--json")) for number in "12")
    assert [row["name"] for row in before["rules"]] == ["tone", "house-style"]
    assert [row["name"] for row in after["rules"]] == ["house-style"]
    missing = [each for each in after["left_out"] if each["reason"] == "missing"]
    assert [each["what"] for each in missing] == ["rule:tone"]
    shown = why(notes, "2")
    assert re.search(r"^rule:tone +missing +rule 'tone' is not there any more", shown, re.M)


def test_the_first_request_of_a_question_is_explained_not_its_later_ones(notes: Path) -> None:
    play(notes, two_questions)
    shown = json.loads(why(notes, "2", "--json"))
    listed = json.loads(output("log", "pier", "--requests", "--json", cwd=notes))["requests"]
    assert [each["id"] for each in listed].index(shown["request"]) == 1
    assert len(listed) == 3


def test_branches_that_were_left_do_not_count(notes: Path) -> None:
    async def body(session: Session, runner: AgentRunner) -> None:
        await two_questions(session, runner)
        await session.navigate(questions_of(session)[1].id)
        await runner.run("Which berth, again?")

    play(notes, body)
    shown = json.loads(why(notes, "--json"))
    assert (shown["number"], shown["question"]) == (2, "Which berth, again?")


def test_a_priority_that_relevance_moved_is_shown_with_what_it_was(notes: Path) -> None:
    class Moving(SelectorFake):
        async def weigh(
            self, question: str, attachments: Sequence[Attachment], state: State
        ) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
            moved = tuple(
                replace(
                    attachment,
                    priority=3,
                    provenance=replace(
                        attachment.provenance, priority_before=attachment.priority, score=0.61
                    ),
                )
                for attachment in attachments
            )
            return moved, ()

    async def body(_session: Session, runner: AgentRunner) -> None:
        await runner.run("When?", attach=["plan.md"])

    play(notes, body, selector=Moving())
    assert re.search(r"^plan\.md .* 5 → 3 +manual 0\.61 +attached", why(notes), re.M)
    request = output("log", "pier", "--request", "1", cwd=notes)
    assert re.search(r"^\| plan\.md +\| .* \| 5 → 3 +\| manual 0\.61 +\| attached", request, re.M)


def test_the_log_and_the_recorder_say_how_items_and_tools_came_to_be_there(notes: Path) -> None:
    play(notes, two_questions)
    log = output("log", "pier", cwd=notes)
    assert "include    rule:tone: added\n" in log
    assert "chosen: rule:berths (agent 0.73, search), tool:fake/read (agent 0.80, search)\n" in log
    assert "agent pilot" in log
    request = output("log", "pier", "--request", "2", cwd=notes)
    items = request[request.index("## Items") : request.index("## Left out")]
    assert items == snapshot("""\
## Items

| item        | placed in             | tokens | priority | included                                      | why                                       |
|-------------|-----------------------|-------:|---------:|-----------------------------------------------|-------------------------------------------|
| glossary    | system library        |     26 |        5 | always                                        | always included                           |
| tides       | this message, in full |     27 |        5 | agent 0.66, expansion from reference:glossary | like reference:glossary, which was chosen |
| house-style | system library        |     26 |        5 | always                                        | always included                           |
| tone        | system library        |     20 |        5 | manual                                        | added by hand                             |

## Tools

| tool        | tokens | included                |
|-------------|-------:|-------------------------|
| use_tool    |     96 | always                  |
| read_result |    184 | always                  |
| fake/ask    |     33 | always                  |
| fake/read   |     28 | agent, kept from before |
| fake/write  |     28 | agent 0.50, search      |

""")


def test_names_of_others_steer_nothing(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    selector = SelectorFake(
        guide("rule", EVIL, text=f"{EVIL}\nmore"), guide("reference", "[bold]x[/bold]", text="t")
    )

    async def body(_session: Session, runner: AgentRunner) -> None:
        await runner.run(f"Is it {EVIL}?")

    play(notes, body, selector=selector)
    shown = why(notes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert r"evil\x1b[2J\u202e[red]x [Always]" in shown
    assert "[bold]x[/bold] [Always]" in shown


def test_a_session_without_an_agent_shows_what_it_has(notes: Path) -> None:
    async def body() -> None:
        search = ToolDefinition(name="search", description="Searches.")
        async with await open_session(
            "pier", workspace=notes, target=TARGET, tools=[search]
        ) as session:
            await session.prepare("When?", attach=["plan.md"])

    anyio.run(body)
    assert why(notes) == snapshot("""\
question 1 of 1: When?
request 000003 to openai:gpt-4o

Rules                             References                       Tools (1)
none                              none                             • search [Always]
                                                                         Searches.

item     placed in              tokens  priority  included  why
plan.md  this message, in full      79  5         manual    attached to this message
""")


def test_a_question_that_is_not_there_is_said_with_how_many_there_are(notes: Path) -> None:
    play(notes, two_questions)
    for number in ("0", "3"):
        said = error("why", "pier", number, cwd=notes)
        assert (
            said == f"error: no question {number}: the path has 2 questions, and 1 is the first\n"
        )
    assert "no session 'sea'" in error("why", "sea", cwd=notes)


def test_nothing_asked_and_nothing_sent_are_told_apart(notes: Path) -> None:
    async def body() -> None:
        async with await open_session("pier", workspace=notes, target=TARGET):
            pass

    anyio.run(body)
    assert "no questions on this path yet" in error("why", "pier", cwd=notes)
    log = notes / "log.jsonl"
    asked = [{"role": "user", "content": "Hi?"}]
    logged = {
        "model": "gpt-4o",
        "messages": [*asked, {"role": "assistant", "content": "Hi."}, *asked],
    }
    log.write_text(json.dumps(logged) + "\n", "utf-8")
    output("import", str(log), "-s", "old", cwd=notes)
    assert "question 1 was not sent by Lamina" in error("why", "old", "1", cwd=notes)
