"""Issue 16, A.5: a secret is judged in the whole of what it stands in, whatever part is sent, and
wherever it comes from: excerpts of files, guides, personas, memory, results of tools."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.replies import openai_reply

import lamina
from lamina.adapters.tools.functions import FunctionTool, FunctionTools
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.memory_file import MemoryFile
from lamina.apps.wiring.file_tools import file_tools
from lamina.core.text.secrets import count_marks, cut_excerpt, find_secrets
from lamina.engine.runners.citations import screen_hits
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
KEY_LINES = [
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + f"{number:02}Zk9LmQ2xR7"
    for number in range(12)
]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *KEY_LINES, "-----END PRIVATE KEY-----"])
NOTE = f"# Keys\n\nMine:\n\n{KEY}\n\n## After\n\nThe tide turns at six.\n"
PASSWORD = "xK9#mP2vL5nQ8w"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    place = tmp_path / "notes"
    place.mkdir()
    (place / "key.md").write_text(NOTE)
    return place


async def open_(folder: Path, **more: Any) -> lamina.Session:
    more.setdefault("settings", lamina.Settings(secrets="redact"))
    return await lamina.open_session(
        workspace=folder, store=lamina.MemoryStore(), target="openai:gpt-4o", **more
    )


def leaks(text: str) -> list[str]:
    return [line for line in [*KEY_LINES, TOKEN, PASSWORD] if line in text]


async def sent(session: lamina.Session, turn: lamina.Turn) -> str:
    """What goes to the model, and what the journal holds of it."""
    return f"{turn.request()}{session.entries}"


# -- excerpts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference", ["key.md#L7-L9", "key.md#L6-L6", "key.md#L10-L40", "key.md#Keys"]
)
async def test_a_selection_inside_a_key_is_no_way_to_it(folder: Path, reference: str) -> None:
    async with await open_(folder) as session:
        turn = await session.prepare("What?", attach=[reference])
        assert leaks(await sent(session, turn)) == []
        assert "[redacted: private key]" in str(turn.request())
        assert any("private key" in warning for warning in turn.warnings)


async def test_an_embedded_section_is_no_way_to_it(folder: Path) -> None:
    (folder / "split.md").write_text(NOTE.replace(KEY_LINES[4], f"# Inner\n{KEY_LINES[4]}"))
    (folder / "outer.md").write_text("![[split#Inner]]\n")
    async with await open_(folder) as session:
        turn = await session.prepare("What?", attach=["outer.md"])
        assert leaks(await sent(session, turn)) == []


async def test_a_query_is_no_way_to_a_value_that_only_its_note_calls_a_password(
    folder: Path,
) -> None:
    (folder / "login.md").write_text(f'---\npassword: "{PASSWORD}"\nplace: here\n---\nText.\n')
    query = '```lamina-query\nTABLE password, place, lower(password) FROM ""\n```\n'
    (folder / "list.md").write_text(query)
    async with await open_(folder) as session:
        turn = await session.prepare("What?", attach=["list.md"])
        text = await sent(session, turn)
        assert leaks(text) == []
        assert PASSWORD.lower() not in text
        assert "here" in text
    async with await open_(folder, settings=lamina.Settings(secrets="off")) as session:
        turn = await session.prepare("What?", attach=["list.md"])
        assert PASSWORD in str(turn.request())


def test_a_passage_that_ends_within_a_secret_does_not_pass() -> None:
    text = f"one {TOKEN} two"
    findings = find_secrets(text)
    for end in range(len(text)):
        for start in range(0, end, 3):
            excerpt = cut_excerpt(text, findings, start, end)
            shown = excerpt.safe or excerpt.text
            assert not any(TOKEN[at : at + 4] in shown for at in range(5, len(TOKEN) - 4))


async def test_passages_that_a_search_finds_are_judged_in_their_note(folder: Path) -> None:
    workspace = FolderWorkspace(folder)
    (note,) = (await workspace.catalogue()).notes
    excerpts = await workspace.excerpts([("key.md", passage) for passage in note.passages])
    assert any(excerpt and excerpt.secrets for excerpt in excerpts)
    assert leaks("".join(excerpt.safe or excerpt.text for excerpt in excerpts if excerpt)) == []
    async with await open_(folder) as session:
        assert isinstance(session.searcher, WorkspaceSearch)
        result = await session.searcher.search("Which keys are mine?", floor=0.0)
        assert leaks(str([hit.text for hit in result.hits])) != []
        hits, warnings = screen_hits(SecretScreen(), result.hits, "redact")
        assert leaks(str([hit.text for hit in hits])) == []
        assert any("replaced before it is sent" in warning for warning in warnings)
    await workspace.aclose()


async def test_a_key_whose_beginning_was_cut_off_is_one(folder: Path) -> None:
    tail = "\n".join([*KEY_LINES[5:], "-----END PRIVATE KEY-----"])
    (finding,) = find_secrets(f"[… cut here …]\n{tail}\nThe tide.")
    assert finding.kind == "private key"


# -- file tools ------------------------------------------------------------------------------------


async def run(folder: Path, name: str, **arguments: Any) -> str:
    async with await open_(folder) as session:
        tools = FunctionTools(*file_tools(FolderWorkspace(folder), session))
        return (await tools.call(name, arguments)).text


async def test_no_lines_of_a_key_are_read_or_found(folder: Path) -> None:
    for start in range(1, 18):
        assert leaks(await run(folder, "read", path="key.md", start=start, end=start + 1)) == []
    for pattern in ("MIIEv", "a", "Mine", "PRIVATE"):
        assert leaks(await run(folder, "grep", pattern=pattern, context=3)) == []
    text = await run(folder, "read", path="key.md")
    assert text.splitlines()[10] == "[redacted: private key]"
    assert "The tide turns at six." in text
    # Lines keep their numbers, so that what is read can be edited.
    assert text.splitlines()[1:][NOTE.split("\n").index("## After")] == "## After"


async def test_a_key_cannot_be_guessed_letter_by_letter(folder: Path) -> None:
    for pattern in ("^MIIEv", "^(?=.*Zk9LmQ)", KEY_LINES[3]):
        answer = await run(folder, "grep", pattern=pattern, regex=True, ignore_case=False)
        assert answer == "(no matches in 1 file)"


async def test_a_mark_is_never_written_over_what_it_stands_for(folder: Path) -> None:
    redacted = (await run(folder, "read", path="key.md")).partition("\n")[2]
    before = (folder / "key.md").read_bytes()
    answers = [
        await run(folder, "write", path="key.md", content=redacted, overwrite=True),
        await run(folder, "edit", path="key.md", old="Mine:", new="Mine: [redacted: private key]"),
        await run(folder, "write", path="new.md", content="token = [redacted: GitHub token]"),
    ]
    assert all("where a secret was left out" in answer for answer in answers)
    assert (folder / "key.md").read_bytes() == before
    assert not (folder / "new.md").exists()
    done = await run(folder, "edit", path="key.md", old="turns at six", new="turns at seven")
    assert done.startswith("edited")
    assert KEY in (folder / "key.md").read_text()


def test_a_file_about_marks_can_be_edited(folder: Path) -> None:
    (folder / "manual.md").write_text("We write [redacted: password] and [redacted: by hand].\n")
    actions = FileActions(FolderWorkspace(folder).root)
    actions.edit("manual.md", "We write [redacted: password]", "They write [redacted: password]")
    actions.write("manual.md", "[redacted: password], again", overwrite=True)
    assert count_marks("[redacted: by hand]") == 0


async def test_no_other_tool_is_given_a_mark(folder: Path) -> None:
    saved: list[str] = []

    def save(texts: list[str]) -> str:
        """Saves texts."""
        saved.extend(texts)
        return "saved"

    output = await FunctionTool(save).run({"texts": ["a", "[Redacted: GitHub token]"]})
    assert output.is_error
    assert "was not run" in output.text
    assert saved == []
    assert (await FunctionTool(save).run({"texts": ["[redacted: by the court]"]})).text == "saved"


async def test_a_mark_is_nothing_to_remember(folder: Path) -> None:
    memory = MemoryFile(folder / "memory.md")
    with pytest.raises(UsageError, match="where a secret was left out"):
        await memory.add("my token is [redacted: GitHub token]")
    assert not (folder / "memory.md").exists()


# -- everything else that is sent ------------------------------------------------------------------


async def test_rules_references_personas_memory_and_projects_are_screened(folder: Path) -> None:
    agent = folder / ".lamina/agents/own"
    (agent / "rules").mkdir(parents=True)
    (agent / "projects/boat").mkdir(parents=True)
    (agent / "agent.yaml").write_text("name: own")
    for name in ("persona.md", "memory.md", "projects/boat/prompt.md", "projects/boat/context.md"):
        (agent / name).write_text(f"{name} {TOKEN}")
    (agent / "rules/a.md").write_text(f"---\ninclude: always\n---\nUse {TOKEN}\n{KEY}")
    (folder / ".lamina/persona.md").write_text(f"Here {TOKEN}")
    (folder / "mine.md").write_text(f"I am {TOKEN}")
    async with await open_(
        folder, agent="own", project="boat", settings=None, memory_file=folder / "mine.md"
    ) as session:
        turn = await session.prepare("What?")
        assert leaks(await sent(session, turn)) == []
        assert str(turn.request()).count("[redacted: GitHub token]") == 7
        about = [warning for warning in turn.warnings if "replaced before it is sent" in warning]
        assert len(about) == 6
        await turn.commit(openai_reply("Yes.", input=turn.prompt.tokens, cached=0))
        again = await session.prepare("And?")
        assert not [warning for warning in again.warnings if "secret" in warning]
        assert again.context.agreement.broke is None


async def test_what_tools_give_is_screened_before_the_journal_has_it(folder: Path) -> None:
    async with await open_(folder) as session:
        turn = await session.prepare("What?")
        turn = await turn.commit(openai_reply(None, calls=[("a", "find"), ("b", "look")]))
        kept = await session.keep_result(lamina.ToolResult(call_id="a", name="find", text=TOKEN))
        assert kept.text == "[redacted: GitHub token]"
        turn = await turn.resume({"a": kept.text, "b": f"it is\n{KEY}"})
        assert leaks(await sent(session, turn)) == []
        about = [warning for warning in turn.warnings if "the result of" in warning]
        assert len(about) == 2


async def test_planned_results_are_screened(folder: Path) -> None:
    async with await open_(folder) as session:
        texts = [lamina.ToolText(name="find", text=f"found {TOKEN}")]
        turn = await session.prepare("What?", tool_texts=texts)
        assert leaks(await sent(session, turn)) == []


async def test_they_are_sent_where_the_session_says_so(folder: Path) -> None:
    (folder / "mine.md").write_text(f"I am {TOKEN}")
    async with await open_(
        folder, settings=lamina.Settings(secrets="warn"), memory_file=folder / "mine.md"
    ) as session:
        turn = await session.prepare("What?", attach=["key.md#L7-L9"])
        assert TOKEN in str(turn.request())
        assert len([warning for warning in turn.warnings if "sent as it stands" in warning]) == 2
