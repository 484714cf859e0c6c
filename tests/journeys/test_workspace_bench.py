"""The workspace benchmark with few notes: every task runs, and its figures are of what they say."""

import json
from pathlib import Path

import pytest

import workspace
from lamina.core.notes.note_reader import read_note
from workspace_notes import make_note, make_notes, needle, path_of, questions, sentences
from workspace_peer import cut


def test_every_task_of_the_benchmark_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "figures.json"
    assert workspace.main(["--quick", "--json", str(kept)]) == 0
    (found,) = json.loads(kept.read_text())["sizes"]
    ours = found["medians"][workspace.LAMINA]
    assert found["notes"] == workspace.QUICK[0]
    assert ours["cold"]["passages"] == ours["warm"]["passages"] > found["notes"]
    assert ours["first search"]["found"] == ours["first search"]["asked"] == 20
    shown = capsys.readouterr().out
    for title, _, _ in (*workspace.ROWS, *workspace.SEARCHES):
        assert title in shown


def test_generated_notes_are_the_same_each_time_and_like_those_of_people(tmp_path: Path) -> None:
    pool = sentences()
    made = [make_note(number, 300, pool) for number in range(300)]
    assert made == [make_note(number, 300, pool) for number in range(300)]
    assert 1_200 < sum(map(len, made)) / len(made) < 1_800
    notes = [read_note(path_of(n), text.encode()) for n, text in enumerate(made)]
    assert not [problem for note in notes for problem in note.problems]
    for field in ("tags", "links", "headings", "aliases", "properties", "passages"):
        assert any(getattr(note, field) for note in notes), field
    assert make_notes(tmp_path, 300) == sum(len(text.encode()) for text in made)
    assert len(list(tmp_path.rglob("*.md"))) == 300


def test_every_needle_is_in_one_note() -> None:
    pool = sentences()
    made = [make_note(number, 200, pool).split() for number in range(200)]
    for number in range(200):
        assert sum(f"{needle(number)}." in words for words in made) == 1
    assert len({*questions(200)}) == 20


def test_the_peer_cuts_between_paragraphs() -> None:
    assert cut("a\n\nb\n\n\n\n" + "c" * 700) == ["a\n\nb\n\n", "c" * 700]
