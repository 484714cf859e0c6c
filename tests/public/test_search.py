"""Searching from a program: what `lamina notes search` and `lamina select` find, in their order."""

import json
import sys
from collections.abc import Iterator
from datetime import date, datetime
from os import utime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.apps.cli.inside import lamina as run_command
from tests.fakes.providers import ProviderFake, ProvidersFake, saying

import lamina
import lamina.sync
from lamina.adapters.files import extras
from lamina.errors import ExtraMissing, JournalError, UsageError
from lamina.types import AgentChoice, NoteSearchResult

NOTES = {
    "runbooks/keys.md": "# Keys\n\n## Rotation\n\nRotate the signing key every month.\n",
    "runbooks/disks.md": "# Disks\n\nReplace a disk that reports errors.\n#oncall\n",
    "diary.md": "# Diary\n\nThe key to the harbour was lost, and new locks were bought.\n",
    "travel.md": "# Travel\n\nThe ferry leaves at noon.\n",
}
GUIDES = {
    "rules/tone.md": ("tone", "How to talk to guests", "always"),
    "rules/mooring.md": ("mooring", "How boats are tied up", "agent"),
    "rules/flags.md": ("flags", "Which flags boats fly", "agent"),
    "rules/spring.md": ("spring", "How spring lines are laid", "manual"),
    "references/tides.md": ("tides", "High and low water by month", "agent"),
    "references/menu.md": ("menu", "What the kitchen cooks", "agent"),
}
QUESTION = "How do I tie up a boat at low water?"
LAST_YEAR = datetime(2025, 6, 1).timestamp()


@pytest.fixture(params=["by words", "by meaning"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways of finding, the second one with the real model."""
    if request.param == "by words":
        monkeypatch.setenv("LAMINA_EMBED", "off")
    else:
        request.getfixturevalue("embedding_cache")
        monkeypatch.delenv("LAMINA_EMBED", raising=False)
    return str(request.param)


@pytest.fixture
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_EMBED", "off")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for path, text in NOTES.items():
        file = tmp_path / "notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    utime(tmp_path / "notes" / "diary.md", (LAST_YEAR, LAST_YEAR))
    return tmp_path / "notes"


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "harbour"
    for path, (name, description, include) in GUIDES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: {name}\ndescription: {description}\ninclude: {include}\n---\n"
        file.write_text(f"{head}All about {name}: {description.lower()}.\n", "utf-8")
    (folder / "agent.yaml").write_text("name: harbour\ndescription: Knows the harbour.\n", "utf-8")
    return folder


def found(notes: Path, query: str, **limits: Any) -> NoteSearchResult:
    with lamina.sync.open_workspace(notes) as workspace:
        return workspace.search(query, **limits)


def opened(agent: Path, **opening: Any) -> lamina.sync.AgentRunner:
    """The agent in a session that is not kept."""
    providers = ProvidersFake(ProviderFake(saying("Hello.")))
    return lamina.sync.open_agent(
        agent=agent, workspace=agent.parent, providers=providers, store=lamina.MemoryStore(),
        target="openai:gpt-5", **opening,
    )  # fmt: skip


def printed_by(*arguments: str, cwd: Path) -> Any:
    """What a command prints as JSON, whatever it warns of."""
    code, out, _ = run_command(*arguments, "--json", cwd=cwd)
    assert code == 0
    return json.loads(out)


# -- notes ---------------------------------------------------------------------------------------


def test_a_search_of_notes_finds_what_the_command_finds(method: str, notes: Path) -> None:
    printed = printed_by("notes", "search", "key rotation", cwd=notes)

    async def search() -> NoteSearchResult:
        async with await lamina.open_workspace(notes) as workspace:
            return await workspace.search("key rotation")

    result = anyio.run(search)
    tier = msgspec.to_builtins(result.tier)
    assert printed == [
        {**hit, "tier": tier} for hit in json.loads(msgspec.json.encode(result.hits))
    ]
    assert result == found(notes, "key rotation")
    assert [hit.path for hit in result.hits[:2]] == ["runbooks/keys.md", "diary.md"]
    assert result.method.startswith("by meaning and words" if "mean" in method else "by words")
    assert [hit.score is None for hit in result.hits[:1]] == ["words" in method]


def test_a_hit_tells_its_place_and_why_it_was_found(method: str, notes: Path) -> None:
    hit = found(notes, "How are keys rotated?").hits[0]
    assert (hit.path, hit.heading, hit.start, hit.end) == (
        "runbooks/keys.md", "Keys > Rotation", 1, 5,
    )  # fmt: skip
    assert "Rotate the signing key" in hit.text
    assert hit.words == ("keys", "rotated")
    likeness = "" if hit.score is None else f"is {hit.score:.2f} like the question and "
    assert hit.why == f"{likeness}shares 'keys', 'rotated'"
    with lamina.sync.open_session(workspace=notes, store=lamina.MemoryStore()) as session:
        (item,) = session.preview_attachment(hit.place).attachments
    assert "Rotate the signing key" in item.item.content


def test_the_safe_text_of_a_hit_is_its_text_without_secrets(method: str, notes: Path) -> None:
    secret = "AKIA" + "Z7Q2M4X9" * 2
    (notes / "vault.md").write_text(f"# Vault\n\nThe access key is {secret}.\n", "utf-8")
    hits = found(notes, "access key of the vault, and how keys are rotated").hits
    plain = [hit for hit in hits if not hit.secrets]
    assert plain
    assert [hit.safe for hit in plain] == [hit.text for hit in plain]
    (secretive,) = (hit for hit in hits if hit.secrets)
    assert secret in secretive.text
    assert secretive.safe == secretive.text.replace(secret, "[redacted: AWS access key]")


@pytest.mark.usefixtures("by_words")
@pytest.mark.parametrize(
    ("limits", "paths"),
    [
        ({"folder": "runbooks"}, ["runbooks/keys.md"]),
        ({"folder": ["runbooks/", "/"]}, ["diary.md", "runbooks/keys.md"]),
        ({"tag": "oncall"}, []),
        ({"since": "2026-01-01"}, ["runbooks/keys.md"]),
        ({"since": date(2026, 1, 1)}, ["runbooks/keys.md"]),
        ({"since": datetime(2026, 1, 1, 9)}, ["runbooks/keys.md"]),
        ({"since": LAST_YEAR + 1}, ["runbooks/keys.md"]),
        ({"until": "2026-01-01T00:00:00"}, ["diary.md"]),
        ({"top": 1}, ["runbooks/keys.md"]),
    ],
    ids=str,
)
def test_a_search_goes_where_it_is_told_to(
    limits: dict[str, Any], paths: list[str], notes: Path
) -> None:
    assert sorted(hit.path for hit in found(notes, "rotate the key", **limits).hits) == paths


@pytest.mark.usefixtures("by_words")
@pytest.mark.parametrize(
    ("query", "limits", "problem"),
    [
        (" \n", {}, "the query is empty"),
        ("key", {"top": 0}, "top is 0: ask for at least one passage"),
        (5, {}, "the query is 5: pass a text"),
        (None, {}, "the query is None: pass a text"),
        ("key", {"top": 1.5}, "top is 1.5: pass a whole number, the most passages"),
        ("key", {"top": "3"}, "top is '3': pass a whole number"),
        ("key", {"top": True}, "top is True: pass a whole number"),
        ("key", {"folder": 5}, "5 is not a folder: pass a string or several"),
        ("key", {"folder": ["runbooks", 5]}, "5 is not a folder: pass a string or several"),
        ("key", {"tag": b"x"}, "b'x' is not a tag: pass a string or several"),
        ("key", {"since": "yesterday"}, "'yesterday' is not a date: use 2026-11-17"),
        ("key", {"until": float("nan")}, "nan is not a date"),
        ("key", {"since": True}, "True is not a date"),
        ("key", {"since": []}, r"\[\] is not a date"),
        ("key", {"folder": " "}, "' ' is not a folder"),
        ("key", {"tag": ["#"]}, "'#' is not a tag"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(
    query: str, limits: dict[str, Any], problem: str, notes: Path, data: Path
) -> None:
    with pytest.raises(UsageError, match=problem):
        found(notes, query, **limits)
    assert not data.exists()


@pytest.mark.usefixtures("by_words")
def test_a_folder_that_is_not_there_finds_nothing_and_says_so(notes: Path) -> None:
    result = found(notes, "key", folder="elsewhere")
    assert (result.hits, result.searched) == ((), 0)
    assert result.warnings == ("no note is in elsewhere, so nothing was searched",)


def test_what_is_no_folder_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        lamina.sync.open_workspace(tmp_path / "nowhere")


@pytest.mark.usefixtures("by_words")
def test_nothing_is_made_before_a_search_and_nothing_is_open_after_it(
    notes: Path, data: Path
) -> None:
    with lamina.sync.open_workspace(notes) as workspace:
        assert not data.exists()
        workspace.search("key")
        assert (data / "index.sqlite").exists()
        open_files = [path for path in opened_files() if path.startswith(str(data))]
        assert open_files
    assert not [path for path in opened_files() if path.startswith(str(data))]
    with pytest.raises(UsageError, match="the workspace 'notes' is closed; open it again"):
        workspace.search("key")


def opened_files() -> Iterator[str]:
    for handle in Path("/proc/self/fd").iterdir():
        try:
            yield str(handle.readlink())
        except OSError:
            continue


@pytest.mark.usefixtures("by_words")
def test_a_search_sees_what_changed_since_the_last_one(notes: Path) -> None:
    with lamina.sync.open_workspace(notes) as workspace:
        assert not workspace.search("lighthouse").hits
        (notes / "new.md").write_text("A lighthouse.\n", "utf-8")
        assert [hit.path for hit in workspace.search("lighthouse").hits] == ["new.md"]
        assert workspace.index().searched == 5


@pytest.mark.usefixtures("by_words")
def test_a_workspace_stands_for_its_folder(notes: Path) -> None:
    async def open_both() -> tuple[Path, object]:
        async with (
            await lamina.open_workspace(notes) as workspace,
            await lamina.open_session(workspace=workspace, store=lamina.MemoryStore()) as session,
        ):
            return workspace.folder, session.workspace

    folder, source = anyio.run(open_both)
    assert isinstance(source, lamina.FolderWorkspace)
    assert folder == source.folder == notes


def test_without_the_extra_it_is_named(
    notes: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = extras.Requirement("search", ("no_such_module",), "search")
    monkeypatch.setitem(extras.REQUIREMENTS, "search", missing)
    with pytest.raises(ExtraMissing, match=r"\[search\]"):
        lamina.sync.open_workspace(notes)
    with opened(agent) as runner, pytest.raises(ExtraMissing, match=r"\[search\]"):
        runner.search(QUESTION)


# -- agents --------------------------------------------------------------------------------------


def told(choice: AgentChoice) -> list[dict[str, Any]]:
    """What is chosen, as `lamina select --json` has it."""
    rows = msgspec.to_builtins(choice.items)
    return [{("id" if key == "item" else key): row[key] for key in row if key != "tokens"}
            for row in rows]  # fmt: skip


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize("preset", [None, "conservative", "aggressive"])
def test_an_agent_chooses_what_the_command_chooses(preset: Any, agent: Path) -> None:
    words = ["--preset", preset] if preset else []
    printed = printed_by("select", QUESTION, "--agent", str(agent), *words, cwd=agent.parent)
    with opened(agent) as runner:
        choice = runner.search(QUESTION, preset=preset)
    assert printed == told(choice)
    assert "rule:mooring" in [item.item for item in choice.items]


@pytest.mark.usefixtures("method")
def test_the_best_of_all_are_those_of_the_command(agent: Path) -> None:
    printed = printed_by("select", QUESTION, "--agent", str(agent), "--top", "2", cwd=agent.parent)
    with opened(agent) as runner:
        assert printed == told(runner.search(QUESTION, top=2))


@pytest.mark.usefixtures("embedding_cache")
def test_a_choice_tells_scores_reasons_and_what_only_just_was_not_chosen(agent: Path) -> None:
    with opened(agent) as runner:
        choice = runner.search(QUESTION)
    by_id = {item.item: item for item in choice.items}
    assert by_id["rule:tone"].why == "always included"
    mooring = by_id["rule:mooring"]
    assert mooring.score is not None
    assert (mooring.part, mooring.origin) == (QUESTION, "search")
    assert mooring.why.startswith(f"fits {QUESTION!r}: mooring")
    (miss,) = [miss for miss in choice.near if miss.item == "reference:menu"]
    assert miss.score is not None
    assert miss.score <= miss.floor < miss.threshold
    assert "the least that is chosen" in miss.why
    assert choice.method == "by meaning and words"
    assert choice.tokens > 0 < choice.always


def test_the_tools_of_an_agents_servers_are_chosen_once_it_is_trusted(
    agent: Path, embedding_cache: Path
) -> None:
    program = str(Path(sys.executable).parent / "mcp-server-time")
    servers = {"time": {"command": program, "include": "agent"}}
    (agent / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    question = "Convert the current time to another timezone"
    printed = printed_by("select", question, "-A", str(agent), "--trust", cwd=agent.parent)
    with opened(agent, trust=True) as runner:
        choice = runner.search(question)
    assert printed == told(choice)
    assert "tool:time/convert_time" in [item.item for item in choice.items]
    with opened(agent) as runner:
        choice = runner.search(question)
    assert "tool" not in {item.kind for item in choice.items}
    (warning,) = [line for line in choice.warnings if line.startswith("not offered: time")]
    assert "is not trusted" in warning


@pytest.mark.usefixtures("by_words")
def test_kinds_limit_what_is_shown_and_not_what_is_chosen(agent: Path) -> None:
    def depth(harbour: str) -> str:
        """How deep the low water is."""
        return harbour

    with opened(agent, tools=[depth]) as runner:
        whole = runner.search(QUESTION)
        for kind in ("rule", "reference", "tool"):
            part = runner.search(QUESTION, kinds=(kind,))
            assert part.items == tuple(item for item in whole.items if item.kind == kind)
            assert part.items
            assert all(miss.kind == kind for miss in part.near)


@pytest.mark.usefixtures("by_words")
def test_what_was_added_and_removed_counts_and_nothing_is_written(agent: Path) -> None:
    with opened(agent) as runner:
        runner.session.add("rule:spring")
        runner.session.remove("rule:mooring")
        runner.session.remove("rule:tone")
        before = runner.session.entries
        reasons = {item.item: item.why for item in runner.search(QUESTION).items}
        assert runner.session.entries == before
    assert reasons["rule:spring"] == "added by hand"
    assert not {"rule:mooring", "rule:tone"} & set(reasons)


@pytest.mark.usefixtures("by_words")
def test_a_search_is_what_the_next_question_is_sent_with(agent: Path) -> None:
    with opened(agent) as runner:
        chosen = {item.item for item in runner.search(QUESTION).items}
        turn = runner.run(QUESTION).turn
    assert turn is not None
    assert {item.item for item in turn.context.items} == chosen


@pytest.mark.usefixtures("by_words")
@pytest.mark.parametrize(
    ("question", "how", "problem"),
    [
        ("", {}, "the question is empty"),
        (5, {}, "the question is 5: pass a text"),
        (
            QUESTION,
            {"kinds": ("rule", "note")},
            "'note' is not a kind: pass a list of 'rule', 'reference', 'tool'",
        ),
        (QUESTION, {"kinds": "rule"}, "kinds is 'rule': pass a list"),
        (QUESTION, {"kinds": ()}, r"kinds is \(\): pass a list"),
        (QUESTION, {"kinds": 5}, "kinds is 5: pass a list"),
        (QUESTION, {"kinds": [["rule"]]}, r"\['rule'\] is not a kind"),
        (QUESTION, {"top": "3"}, "top is '3': pass a whole number"),
        (QUESTION, {"top": 1.5}, "top is 1.5: pass a whole number"),
        (QUESTION, {"preset": "nope"}, "nope"),
        (QUESTION, {"preset": 5}, "5"),
        (QUESTION, {"top": 3, "preset": "normal"}, "pass either top or preset, not both"),
        (QUESTION, {"top": 0}, "top is 0"),
    ],
)
def test_what_an_agent_cannot_be_asked_is_refused(
    question: str, how: dict[str, Any], problem: str, agent: Path
) -> None:
    with opened(agent) as runner, pytest.raises(UsageError, match=problem):
        runner.search(question, **how)


@pytest.mark.usefixtures("by_words")
def test_a_closed_agent_searches_no_more_than_it_runs(agent: Path) -> None:
    with opened(agent) as runner:
        pass
    with pytest.raises(JournalError) as running:
        runner.run(QUESTION)
    with pytest.raises(JournalError) as searching:
        runner.search(QUESTION)
    assert str(searching.value) == str(running.value)


@pytest.mark.usefixtures("by_words")
def test_an_agent_searches_with_await_as_without(agent: Path) -> None:
    async def search() -> AgentChoice:
        async with await lamina.open_agent(
            agent=agent, providers=ProvidersFake(ProviderFake()), store=lamina.MemoryStore(),
            workspace=agent.parent, target="openai:gpt-5",
        ) as runner:  # fmt: skip
            return await runner.search(QUESTION)

    with opened(agent) as runner:
        assert anyio.run(search) == runner.search(QUESTION)


@pytest.mark.usefixtures("embedding_cache")
def test_where_nothing_stands_out_the_best_is_named(
    agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAMINA_EMBED", raising=False)
    with opened(agent) as runner:
        choice = runner.search("What shall we do today?")
    assert [item.item for item in choice.items] == ["rule:tone"]
    (warning,) = choice.warnings
    best = choice.near[0].item
    assert warning.startswith(
        f"nothing stood out for this question: the evidence for the best, {best}, is 0."
    )
