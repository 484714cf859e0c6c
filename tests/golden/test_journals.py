"""Journals that were written once open, verify and go on, to the byte."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace
from tests.golden.digests import run
from tests.golden.journals import FOLDER, examine_copy, main, names, read_expected
from tests.golden.wires import TARGETS

from lamina import JsonlStore
from lamina.core.values.damage import DamageKind
from lamina.core.values.entry import RENDERER, CustomEntry, Entry, RequestEntry, TransformEntry
from lamina.core.values.patch import PatchOp

# Of sessions that cannot be opened at all, nothing is known.
REFUSED = "damaged-later-format"
# Those whose records prove everything that went on the wire.
COVERED = ("adopted", "appended", "bound-thinking", "found", "once")


def entries() -> Iterator[Entry]:
    """Every entry of every golden journal."""
    for name in names():
        if name != REFUSED:
            yield from run(JsonlStore(FOLDER).read, name).entries.values()


def tags(union: Any) -> set[str]:
    return {str(arg.__struct_config__.tag) for arg in get_args(union)}


@pytest.mark.parametrize("name", names())
def test_a_golden_journal_opens_verifies_and_goes_on_as_it_did(name: str, tmp_path: Path) -> None:
    assert examine_copy(name, tmp_path / "copy") == read_expected()[name]


@pytest.mark.parametrize("name", names())
def test_with_the_present_renderer_a_golden_journal_is_as_sound_and_goes_on(
    name: str, tmp_path: Path
) -> None:
    """What is sent at its next boundary has other words, and so other bytes."""
    bytes_of = {"requests": "", "journal": ""}
    found = examine_copy(name, tmp_path / "copy", RENDERER)
    assert replace(found, **bytes_of) == replace(read_expected()[name], **bytes_of)


def test_golden_journals_hold_every_kind_of_entry() -> None:
    found = {str(entry.__struct_config__.tag) for entry in entries()}
    assert found == tags(Entry)


def test_golden_journals_hold_every_op_of_a_patch() -> None:
    ops = {
        str(op.__struct_config__.tag)
        for entry in entries()
        if isinstance(entry, TransformEntry)
        for op in entry.patch.ops
    }
    assert ops == tags(PatchOp)


def test_golden_journals_hold_requests_on_every_wire() -> None:
    found = {entry.target for entry in entries() if isinstance(entry, RequestEntry)}
    assert found >= {target.name for target in TARGETS}


def test_golden_journals_hold_plans_searches_and_problems() -> None:
    kinds = {entry.kind for entry in entries() if isinstance(entry, CustomEntry)}
    assert kinds >= {"lamina.plan", "lamina.planned", "lamina.search", "lamina.problem"}


def test_golden_journals_are_damaged_in_every_way_there_is() -> None:
    found = {kind for expected in read_expected().values() for kind in expected.found}
    # Pages are those of a database, and these are files.
    assert found == set(get_args(DamageKind)) - {"bad_page"}


# Its texts are those of this renderer, whatever its header says: nothing is wrong with it.
UNPROVEN = "damaged-other-renderer"


def test_every_golden_journal_has_its_record_and_the_undamaged_ones_are_not_broken() -> None:
    """Most of those with requests were written before options and other parameters of the wire were
    recorded, so that they are not covered, neither sound nor broken."""
    expected = read_expected()
    assert sorted(expected) == names()
    broken = {name for name, record in expected.items() if record.state == "broken"}
    damaged = {name for name in names() if name.startswith("damaged-")}
    assert broken == (damaged - {UNPROVEN}) | {"unknown"}
    assert {name for name, record in expected.items() if record.state == "sound"} == {
        name
        for name in names()
        if (not expected[name].checked or name in COVERED) and name not in broken
    }


def test_no_golden_journal_is_written_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--write" in capsys.readouterr().err
