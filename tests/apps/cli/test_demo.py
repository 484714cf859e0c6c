"""`lamina demo` on the embedded model: answers, counters, ratios; and what it does without one."""

import json
import re
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.commands import error, lamina, output

from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.demo_command import SAMPLE_WINDOW, SAMPLE_WRITTEN, sample_folder, sample_script
from lamina.apps.cli.demo_ways import Measurement, SampleWorkspace, open_ways, physical_limit
from lamina.apps.cli.script import EditedWorkspace, read_script
from lamina.apps.wiring.runners import Clients
from lamina.core.values.event import Event

WAYS = ("lazy", "eager", "naive")
# What a newcomer should find in the answers, turn by turn. A small model may err once.
FACTS = ("62", "2.40", "12", "3.10", "16 ampere")
TALK = {
    "title": "A gate",
    "system": "Answer from the attached note, in one short sentence.",
    "turns": [
        {"ask": "What is the code word?", "attach": ["gate.md"]},
        {"ask": "What colour is the gate?", "attach": ["gate.md"]},
    ],
}
GATE = "# The gate\n\nThe code word is walnut. The gate is green.\n"


async def play_sample() -> tuple[int, list[Measurement]]:
    """The demo's own conversation as Lamina assembles it, and the limit."""
    script = read_script(sample_script())
    source = SampleWorkspace(FolderWorkspace(sample_folder()), SAMPLE_WRITTEN)
    folder = EditedWorkspace(source)
    target = load_book().find(DEFAULT_TARGET)
    counter = load_book().counter(target)
    assert counter.exact
    clients = Clients(slots=1, window=SAMPLE_WINDOW)
    lazy, *_ = await open_ways(script, folder, target, clients, counter, SAMPLE_WINDOW)
    measured = []

    def ignore(event: Event) -> None:
        """Nobody watches."""

    for turn in script.turns:
        folder.edit(turn.edit)
        measured.append(await lazy.ask(turn, ignore))
    return await physical_limit(script, source, counter.count), measured


@pytest.fixture(scope="module")
def sample(embedded_model: Path) -> tuple[int, list[Measurement]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(embedded_model.parent.parent))
        return anyio.run(play_sample)


@pytest.fixture(scope="module")
def played(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A short conversation in all three ways, as it is on the screen."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "gate.md").write_text(GATE, "utf-8")
    (folder / "talk.json").write_text(json.dumps(TALK), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(embedded_model.parent.parent))
        return output("demo", "-w", ".", "--script", "talk.json", cwd=folder)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def bars(shown: str, way: str) -> list[tuple[int, int]]:
    """Prompt and re-processed tokens of each turn."""
    found = re.findall(rf"^  {way} +[░█]+ +([\d,]+) +([\d,]+) +[\d.]+ s$", shown, re.MULTILINE)
    return [(number(prompt), number(again)) for prompt, again in found]


def total(shown: str, way: str) -> re.Match[str]:
    row = re.search(
        rf"^│ {way} +│ +([\d,]+) │ +([\d,]+) │ +([\d.]+)x │ +([\d.]+)x │ +[\d.]+ s │ +([\d.]+)x │$",
        shown,
        re.MULTILINE,
    )
    assert row is not None
    return row


def test_lazy_reprocesses_at_most_15_percent_more_than_the_limit(
    sample: tuple[int, list[Measurement]],
) -> None:
    limit, measured = sample
    again = sum(measurement.reprocessed for measurement in measured)
    assert limit < again <= 1.15 * limit


def test_the_ledger_predicts_to_the_token_what_the_model_finds_in_its_cache(
    sample: tuple[int, list[Measurement]],
) -> None:
    verdicts = [measurement.verdict for measurement in sample[1] if measurement.verdict]
    assert [verdict.meaning for verdict in verdicts] == ["nothing_sent_before"] + [
        "as_expected"
    ] * 4
    assert [verdict.reported for verdict in verdicts] == [verdict.expected for verdict in verdicts]


def test_the_answers_are_what_the_notes_say(sample: tuple[int, list[Measurement]]) -> None:
    answers = [measurement.answer for measurement in sample[1]]
    right = [fact in answer for fact, answer in zip(FACTS, answers, strict=True)]
    assert sum(right) >= len(FACTS) - 1


def test_every_way_is_drawn_on_every_turn_and_the_table_adds_up(played: str) -> None:
    assert re.findall(r"^turn (\d+) ", played, re.MULTILINE) == ["1", "2"]
    again = {way: number(total(played, way)[2]) for way in WAYS}
    for way in WAYS:
        turns = bars(played, way)
        assert len(turns) == len(TALK["turns"])
        assert sum(prompt for prompt, _ in turns) == number(total(played, way)[1])
        assert sum(read for _, read in turns) == again[way]
        # Each begins with a cold slot of its own.
        assert turns[0][0] == turns[0][1]
        assert float(total(played, way)[4]) == pytest.approx(again[way] / again["lazy"], abs=0.006)
    assert again["lazy"] < min(again["eager"], again["naive"])
    assert max(map(len, played.splitlines())) <= 100


def test_questions_and_answers_of_the_model_are_shown(played: str) -> None:
    assert "A gate: 2 turns with local:smollm2-135m." in played
    said = played.partition("  What is the code word?\n")[2].partition("\n        L1")[0]
    assert "walnut" in said


def test_a_model_that_cannot_be_had_gives_way_to_the_script_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = lamina("demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "The model is not available: " in done.stderr
    assert "the same conversation without it" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == output("demo", "--no-model", cwd=tmp_path)


def test_only_a_model_on_this_machine_can_be_asked(tmp_path: Path) -> None:
    said = error("demo", "-t", "anthropic:claude-opus-5", cwd=tmp_path)
    assert "'anthropic:claude-opus-5' is not a model on this machine; --no-model" in said
