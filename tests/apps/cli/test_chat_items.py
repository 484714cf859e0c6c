"""Rules, references and tools in a chat: what is in, adding, taking out, and why."""

import re
from functools import partial
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from tests.apps.cli.chats import Act, SourceFake, Talk, answer, opened
from tests.fakes.providers import ProviderFake
from tests.fakes.selection import SelectorFake, guide
from tests.fakes.tools import ToolHostFake, tool

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.chat.completer import ChatCompleter
from lamina.apps.cli.chat.slash_commands import list_arguments
from lamina.apps.views.mentions import Paths, find_mentions, mention_guide, unfinished_mention
from lamina.core.assembly.inclusion import find_mentions as find_guides
from lamina.core.journal import State
from lamina.core.values.agent import Guides
from lamina.core.values.item import ItemId
from lamina.core.values.selection import SelectedItem
from lamina.engine.session.session import core_of
from lamina.engine.sources.selector import Selector
from lamina.errors import LaminaError

TIDES = ItemId("reference:tides")


def agent() -> SelectorFake:
    return SelectorFake(
        guide("rule", "house-style", description="How we write."),
        guide("rule", "be kind", "manual", description="Tone."),
        guide("reference", "tides", "agent", level=7, description="When it is high."),
        finds={"tide": [SelectedItem(item=TIDES, score=0.5)]},
    )


def tools() -> ToolHostFake:
    return ToolHostFake(tool("ask"), replace(tool("wipe", description="Wipes."), include="manual"))


def talk(notes: Path, *acts: Act, selector: Selector | None = None, replies: int = 3) -> Talk:
    """A chat with an agent's rules, references and tools."""

    async def body() -> Talk:
        provider = ProviderFake(*(answer(f"{number}.") for number in range(replies)))
        async with opened(notes, SourceFake(*acts), provider, tools()) as talked:
            core_of(talked.session).turns.tools.selector = selector or agent()
            talked.code = await talked.chat.talk()
            return talked

    return anyio.run(body)


def sent(talked: Talk) -> list[str]:
    """What the last request held, with its modes."""
    last = talked.session.state.requests.sent
    assert last is not None
    items = [f"{item.item} {item.include}" for item in last.context.items]
    return sorted(items + [f"{each.item} {each.include}" for each in last.context.tools])


# -- what is in ----------------------------------------------------------------------------------


def test_items_shows_what_is_in_and_what_can_be_added_also_before_the_first_question(
    notes: Path,
) -> None:
    talked = talk(notes, "/items")
    assert talked.out == snapshot("""\
in this session   why        what it is
rule:house-style  always in  How we write.
tool:fake/ask     always in  Does ask.

can be added     until then       what it is
rule:be kind     not sent         Tone.
reference:tides  found by search  When it is high.
tool:fake/wipe   not sent         Wipes.
/add NAME and /remove NAME change this; /why shows what was used
""")
    assert talked.code == 0


def test_laminas_own_tools_are_taken_out_by_name_and_can_be_added_again(notes: Path) -> None:
    talked = talk(
        notes, "Hello.", "/remove tool:read_result", "/items", "Still there?",
        "/add tool:read_result", "/items", "And now?",
    )  # fmt: skip
    assert "tool:read_result is excluded from the next message on" in talked.err
    first, second = talked.out.split("in this session")[1:]
    assert re.search(r"^tool:/read_result +removed +Reads what was left out", first, re.M)
    assert re.search(r"^tool:/read_result +added", second, re.M)
    removable = [name for name, _ in talked.chat.members.removable]
    assert removable.count("tool:/read_result") == 1


def test_a_rule_of_certain_files_is_shown_with_what_it_waits_for(notes: Path) -> None:
    python = replace(guide("rule", "python", "manual"), globs=("**/*.py", "*.pyi"))
    wide = replace(guide("rule", "wide", "agent"), globs=("**/*.py",))
    talked = talk(notes, "/items", selector=SelectorFake(python, wide))
    assert re.search(r"^rule:python +joins with \*\*/\*\.py, \*\.pyi", talked.out, re.M)
    assert re.search(r"^rule:wide +found by search", talked.out, re.M)


def test_what_others_outranked_is_told_by_why_and_is_no_warning(notes: Path) -> None:
    selector = SelectorFake(
        guide("reference", "tides", "agent"),
        guide("reference", "ebb", "agent"),
        finds={"tide": [SelectedItem(item=TIDES, score=0.5)]},
    )
    talked = talk(notes, "When is the tide?", "/why", selector=selector)
    assert "left out" not in talked.err
    assert re.search(r"^reference:ebb +ranked lower", talked.out, re.M)


def test_what_is_added_applies_from_the_next_message_on_and_what_is_removed_does_not(
    notes: Path,
) -> None:
    talked = talk(notes, "/add rule:be kind", "/add tool:fake/wipe", "Hello?")
    assert "rule:be kind is included from the next message on\n" in talked.err
    assert sent(talked) == snapshot(
        [
            "rule:be kind manual",
            "rule:house-style always",
            "tool:fake/ask always",
            "tool:fake/wipe manual",
        ]
    )
    talked = talk(
        notes, "/remove rule:house-style", "/remove ref:tides", "/remove tool:fake/ask",
        "When is the tide?",
    )  # fmt: skip
    expected = (
        "ref:tides is excluded from the next message on, also from search, until you /add it\n"
    )
    assert expected in talked.err
    assert sent(talked) == []


def test_what_changes_nothing_is_said_to(notes: Path) -> None:
    talked = talk(
        notes, "/add rule:House-Style", "/remove rule:be kind", "/add ref:tides", "/add ref:tides",
        "/remove ref:tides", "/remove ref:tides",
    )  # fmt: skip
    said = talked.err.splitlines()[1:]
    assert said == snapshot(
        [
            "rule:House-Style is already included",
            "rule:be kind was not included",
            "ref:tides is included from the next message on",
            "ref:tides is already included",
            "ref:tides is excluded from the next message on, also from search, until you /add it",
            "ref:tides was not included",
        ]
    )
    assert talked.code == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/add", "usage: /add rule:NAME|ref:NAME|tool:SERVER/NAME; /items lists"),
        ("/remove", "usage: /remove rule:NAME|ref:NAME|tool:SERVER/NAME; /items lists"),
        ("/add tides", "'tides' is not of the form rule:NAME, ref:NAME or tool:SERVER/NAME"),
        ("/add rule:house-stlye", "no rule 'house-stlye'; did you mean rule:house-style?"),
        ("/remove tool:fake/gone", "there is no tool 'fake/gone'; did you mean"),
        ("/items all", "usage: /items [adopt]"),
        ("/why me", "usage: /why [N]"),
        ("/why", "no questions on this path yet: there is no context to explain"),
    ],
)
def test_a_command_that_cannot_be_done_says_what_to_do(
    notes: Path, line: str, problem: str
) -> None:
    talked = talk(notes, line)
    assert problem in talked.err
    assert talked.code == 1


def test_what_was_added_and_deleted_is_shown_as_missing(notes: Path) -> None:
    selector = agent()

    def delete() -> None:
        selector.source.listed = [each for each in selector.source.listed if each.name != "be kind"]

    talked = talk(notes, "/add rule:be kind", delete, "/items", selector=selector)
    assert re.search(r"^rule:be kind +missing$", talked.out, re.M)


def test_a_source_that_cannot_be_read_does_not_end_the_chat(notes: Path) -> None:
    class Broken(SelectorFake):
        async def guides(self, state: State) -> Guides:
            raise LaminaError("the folder is gone")

    talked = talk(notes, "/items", "/add rule:x", selector=Broken())
    assert "! the folder is gone" in talked.out
    assert "error: the folder is gone" in talked.err


def test_hostile_names_steer_nothing(notes: Path) -> None:
    evil = "\x1b[2J\u202e[red]"
    selector = SelectorFake(
        guide("rule", f"a{evil}", description=evil), guide("rule", f"b{evil}", "manual")
    )
    talked = talk(notes, "/items", f"/add rule:b{evil}", "Hm?", "/why", selector=selector)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", talked.out + talked.err)
    assert r"a\x1b[2J\u202e[red]" in talked.out


# -- why -----------------------------------------------------------------------------------------


def test_why_shows_the_context_of_the_last_question_or_of_another(notes: Path) -> None:
    talked = talk(notes, "When is the tide?", "And else?", "/why 1", "/why")
    first, last = talked.out.split("question 2 of 2: And else?")
    assert "007 • tides [Agent - 0.50]" in first
    assert "tides [" not in last
    assert "house-style [Always]" in last
    assert "fake. • ask [Always]" in last
    assert "no question 3: the path has 2 questions" in talk(notes, "One?", "Two?", "/why 3").err


def test_the_context_shows_how_each_item_was_included(notes: Path) -> None:
    talked = talk(notes, "When is the tide?", "/context", "/log")
    assert re.search(r"^tides +\d+ +this message, in full +agent 0\.50, search ", talked.out, re.M)
    assert re.search(r"^fake/ask +\d+ +always$", talked.out, re.M)


# -- mentions --------------------------------------------------------------------------------------


def test_a_mentioned_rule_is_added_and_is_no_path(notes: Path) -> None:
    talked = talk(notes, 'By @rule:"be kind", with @ref:tides.')
    assert "sent as text" not in talked.err
    assert "left out" not in talked.err
    assert {"rule:be kind manual", "reference:tides manual"} <= set(sent(talked))


def test_without_rules_and_references_a_mention_is_text(notes: Path) -> None:
    talked = talk(notes, "By @rule:x?", selector=SelectorFake())
    told = "rule:x: this session has no rules or references to add; sent as text\n"
    assert told in talked.err


@pytest.mark.parametrize("name", ["plain", "a b", "odd.", "don't", "ünï", "dir/x.md", "a,"])
def test_a_guide_is_mentioned_so_that_it_is_found_again(notes: Path, name: str) -> None:
    for kind in ("rule", "reference"):
        item = ItemId(f"{kind}:{name}")
        text = f"Take {mention_guide(item)}, please."
        assert find_guides(text) == (item,)
        found = anyio.run(find_mentions, text, FolderWorkspace(notes), notes)
        assert (found.paths, found.unknown, found.guides) == ((), (), (item,))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("by @rule:ho", ("rule:ho", 8)),
        ('by @ref:"be k', ("ref:be k", 10)),
        ('by @rule:"be kind" and', None),
        ("@ref:", ("ref:", 5)),
    ],
)
def test_a_guide_that_is_being_typed_is_found(text: str, found: tuple[str, int] | None) -> None:
    assert unfinished_mention(text) == found


# -- completion ------------------------------------------------------------------------------------


def completions(talked: Talk, notes: Path, text: str) -> list[str]:
    completer = ChatCompleter(Paths(notes), partial(list_arguments, talked.chat))
    found = completer.get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + completion.start_position] + completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/add rule:be k", ["/add rule:be kind"]),
        ("/add wipe", ["/add tool:fake/wipe"]),
        ("/add house", []),
        ("/remove ", [
            "/remove rule:house-style", "/remove tool:fake/ask", "/remove reference:tides",
        ]),
        ("/settings guide_search.top", [
            "/settings guide_search.top_k", "/settings guide_search.top_n",
        ]),
        ("/settings tool_policy ", [
            "/settings tool_policy sticky", "/settings tool_policy exact",
            "/settings tool_policy all",
        ]),
        ("/settings relevance_priority ", [
            "/settings relevance_priority true", "/settings relevance_priority false",
        ]),
        ("/why ", ["/why 1", "/why 2"]),
        ("by @ru", ['by @rule:house-style', 'by @rule:"be kind"']),
        ("by @rule:kind", ['by @rule:"be kind"']),
        ('by @rule:"be', ['by @rule:"be kind"']),
        ("@ref:", ["@ref:tides"]),
        ("@reference:ti", ["@ref:tides"]),
        ("@pl", ["@plan.md"]),
    ],
)  # fmt: skip
def test_names_are_completed(notes: Path, text: str, expected: list[str]) -> None:
    talked = talk(notes, "One?", "Two?", "/items")
    assert completions(talked, notes, text) == expected
