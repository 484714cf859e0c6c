"""`lamina context` in the modes of `lamina ask`: what is shown is what would be sent."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.test_ask_modes import NOTES, ClientsFake
from tests.fakes.providers import ProviderFake, calling, saying

QUESTION = "How many berths has the north quay?"
FILES = ("ls", "read", "grep", "getFileTree", "write", "edit", "touch", "mv", "rm", "undo")


@pytest.fixture
def folder(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setenv("LAMINA_TARGET", "openai:gpt-4o")
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for path, text in NOTES.items():
        (notes / path).parent.mkdir(exist_ok=True)
        (notes / path).write_text(text, "utf-8")
    return notes


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> ProviderFake:
    """Whoever answers `ask`; `context` finds nobody to ask."""
    provider = ProviderFake()
    monkeypatch.setattr(
        "lamina.apps.views.session_opener.Clients", lambda **_: ClientsFake(provider)
    )
    return provider


def everything(folder: Path) -> dict[str, bytes]:
    """All files of the folder and of the home beside it."""
    files = (path for path in folder.parent.rglob("*") if path.is_file())
    return {str(file): file.read_bytes() for file in files}


def as_json(*arguments: str, cwd: Path) -> Any:
    return json.loads(output("context", *arguments, "--json", cwd=cwd))


def without_keys(body: Any) -> Any:
    """A request without what a session is known by."""
    return {name: each for name, each in body.items() if "cache" not in name and name != "stream"}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--files",),
        ("--files", "--in", "land"),
        ("--mode", "qa"),
        ("--mode", "qa", "--in", "#ferry", "--active", "plan.md"),
        ("--mode", "plan"),
        ("--mode", "plan", "--files", "-a", "sea/"),
    ],
)
def test_what_is_shown_is_what_is_sent(
    folder: Path, provider: ProviderFake, options: tuple[str, ...]
) -> None:
    shown = json.loads(output("context", QUESTION, "--system", "S", *options, "--wire", cwd=folder))
    assert provider.bodies == []
    code, _, said = lamina("ask", QUESTION, "--system", "S", *options, cwd=folder)
    assert code == 0, said
    sent = json.loads(json.dumps(provider.bodies[0]))
    assert without_keys(sent) == without_keys(shown)
    assert shown["messages"][-1]["content"].endswith(QUESTION)


def test_the_request_for_a_plan_is_shown_and_that_the_other_cannot_be(
    folder: Path, provider: ProviderFake
) -> None:
    provider.scripts += [calling(("a", "localSearch", {"query": "berths"})), saying("Nine.")]
    shown = output("context", QUESTION, "--mode", "plan", "--files", cwd=folder)
    assert shown.startswith("# Request to openai:gpt-4o, for a plan\n\nThis is the request for")
    assert "cannot be shown before a model has made the plan." in shown
    assert all(f"\n| {name} | " in shown for name in ("localSearch", *FILES))
    described = as_json(QUESTION, "--mode", "plan", cwd=folder)
    assert described["request"] == "plan"
    assert "cannot be shown" in described["not_shown"]
    assert described["segments"][-1]["content"]["text"] == QUESTION
    assert provider.bodies == []


def test_what_is_found_is_listed_with_the_numbers_it_would_be_cited_by(folder: Path) -> None:
    shown = output("context", QUESTION, "--mode", "qa", "--full", cwd=folder)
    assert "## Found in 4 notes, by words\n" in shown
    assert "| [^1] | sea/harbour.md#Berths | L1-L3 |" in shown
    assert "The north quay has nine berths for ferries." in shown
    assert "> warning: notes are searched by their words alone: " in shown
    described = as_json(QUESTION, "--mode", "qa", cwd=folder)
    assert described["found"][0] == {
        "path": "sea/harbour.md", "heading": "Berths", "start": 1, "end": 3, "score": None,
    }  # fmt: skip
    assert "words alone" in described["warnings"][0]
    nothing = output("context", QUESTION, "--mode", "qa", "--until", "2001-01-01", cwd=folder)
    assert "Nothing was found in 0 notes." in nothing
    tight = output("context", QUESTION, "--mode", "qa", "--window", "100", cwd=folder)
    assert "Nothing found in 4 notes fits into the request." in tight
    assert "> warning: there is no room for any of the " in tight


def test_tools_are_listed_only_if_they_are_offered(folder: Path) -> None:
    tools = as_json(QUESTION, "--files", cwd=folder)["context"]["tools"]
    assert [tool["name"] for tool in tools] == ["read_result", *FILES, "localSearch"]
    assert "\n| ls | " in output("context", QUESTION, "--files", cwd=folder)
    assert "tools" not in as_json(QUESTION, cwd=folder)["context"]


@pytest.mark.parametrize("options", [("--mode", "qa"), ("--mode", "plan"), ("--files",)])
def test_nothing_is_written_anywhere(folder: Path, options: tuple[str, ...]) -> None:
    before = everything(folder)
    output("context", QUESTION, *options, cwd=folder)
    assert everything(folder) == before
    assert "harbour" in lamina("notes", "search", "berths", "--json", cwd=folder)[1]
    # Neither where an index is there already.
    before = everything(folder)
    assert any(name.endswith("index.sqlite") for name in before)
    (folder / "new.md").write_text("The south quay has two berths.\n", "utf-8")
    before |= {str(folder / "new.md"): (folder / "new.md").read_bytes()}
    shown = output("context", "The south quay?", *options, cwd=folder)
    assert ("| new.md |" in shown) == ("qa" in options)
    assert everything(folder) == before


def test_a_script_is_played_before_a_question_in_a_mode(folder: Path) -> None:
    turns = [{"ask": "One?", "answer": "1"}, {"ask": QUESTION}]
    (folder / "talk.json").write_text(json.dumps({"turns": turns}), "utf-8")
    wire = ("--mode", "qa", "--wire")
    shown = json.loads(output("context", "--script", "talk.json", *wire, cwd=folder))
    assert [each["role"] for each in shown["messages"]] == ["system", "user", "assistant", "user"]
    assert "nine berths" in shown["messages"][-1]["content"]
    turns[0]["edit"] = {"plan.md": "other"}  # type: ignore[assignment]
    (folder / "talk.json").write_text(json.dumps({"turns": turns}), "utf-8")
    said = error("context", "--script", "talk.json", *wire, cwd=folder)
    assert "the script edits notes, but searches and tools would not see that" in said


def test_what_would_have_no_effect_is_refused_as_by_ask(folder: Path) -> None:
    said = error("context", "Why?", "--in", "sea", cwd=folder)
    assert said == error("ask", "Why?", "--in", "sea", cwd=folder)
    said = error("context", "Why?", "--mode", "qa", "--files", cwd=folder, code=2)
    assert "--files needs --mode agent or plan" in " ".join(said.replace("│", " ").split())


def test_a_name_that_fits_several_is_refused_as_by_ask(folder: Path) -> None:
    (folder / "sea" / "Plan.md").write_text("A", "utf-8")
    (folder / "land" / "Plan.md").write_text("B", "utf-8")
    (folder / "plan.md").unlink()
    said = error("context", "Why?", "-a", "[[Plan]]", "-a", "gone", cwd=folder)
    assert said.startswith("error: cannot attach: 'Plan' may mean any of 'land/Plan.md', ")


def test_what_an_answer_is_held_to_cite_is_shown_for_targets_that_can_be(folder: Path) -> None:
    asked = (QUESTION, "--mode", "qa", "-m", "local:smollm2-135m")
    numbers = as_json(*asked, cwd=folder)["citations"]
    assert numbers == list(range(1, len(numbers) + 1))
    marks = " ".join(f"[^{number}]" for number in numbers)
    assert f"\nOptions: must cite {marks}.\n" in output("context", *asked, cwd=folder)
    vendor = (QUESTION, "--mode", "qa", "-m", "openai:gpt-5.6")
    assert "citations" not in as_json(*vendor, cwd=folder)
    assert "must cite" not in output("context", *vendor, cwd=folder)
