"""`lamina notes`: what is in a folder of notes, and what is wrong with it."""

import json
import os
from pathlib import Path

import pytest
from tests.apps.cli.inside import error, lamina, output

BY_WORDS = "warning: notes are searched by their words alone: embeddings are switched off\n"
NEW_YEAR = 1_767_225_600  # 2026-01-01, in UTC


@pytest.fixture
def vault(notes: Path) -> Path:
    """The plan that is there, and some notes more."""
    files = {
        "sea/ferry.md": "---\ntags: [Draft, sea/port]\nstatus: open\n---\n"
        "# Ferries\n\n## North\n\nFerries leave the north quay at noon.\n",
        "sea/log.md": "The ferry was late. #draft\n",
        "land/train.md": "Trains leave from platform four.\n",
    }
    for path, text in files.items():
        (notes / path).parent.mkdir(exist_ok=True)
        (notes / path).write_text(text, "utf-8")
    return notes


def search(*arguments: str, cwd: Path) -> str:
    """What a search by words prints."""
    code, out, err = lamina("notes", "search", "--lexical", *arguments, cwd=cwd)
    assert (code, err) == (0, "")
    return out


# -- search --------------------------------------------------------------------------------------


def test_a_search_shows_each_passage_with_its_lines_and_heading(vault: Path) -> None:
    assert search("pier", cwd=vault) == (
        "words  plan.md#L1-L3  ·  Plan\n       # Plan The pier opens in May.\n"
    )
    assert search("north quay", cwd=vault) == (
        "words  sea/ferry.md#L5-L9  ·  Ferries > North\n"
        "       # Ferries ## North Ferries leave the north quay at noon.\n"
    )


def test_a_search_for_machines_is_json(vault: Path) -> None:
    (hit,) = json.loads(search("pier", "--json", cwd=vault))
    mtime = hit.pop("mtime")
    assert mtime == (vault / "plan.md").stat().st_mtime
    assert hit == {
        "item": "note:plan.md",
        "path": "plan.md",
        "title": "plan",
        "text": "# Plan\n\nThe pier opens in May.",
        "start": 1,
        "end": 3,
        "heading": "Plan",
        "anchor": "Plan",
        "words": ["pier"],
    }


def test_a_search_stays_in_any_of_its_folders_and_tags(vault: Path) -> None:
    def found(*where: str) -> list[str]:
        options = [word for each in where for word in ("--in", each)]
        return sorted(
            hit["path"] for hit in json.loads(search("leave late", "--json", *options, cwd=vault))
        )

    assert found() == ["land/train.md", "sea/ferry.md", "sea/log.md"]
    assert found("sea") == found("sea/") == ["sea/ferry.md", "sea/log.md"]
    assert found("sea", "land") == ["land/train.md", "sea/ferry.md", "sea/log.md"]
    assert found("#draft") == ["sea/ferry.md", "sea/log.md"]
    assert found("#sea") == ["sea/ferry.md"]
    assert found("sea", "#sea", "#none") == ["sea/ferry.md"]


def test_a_search_goes_by_when_a_note_changed(vault: Path) -> None:
    os.utime(vault / "sea" / "log.md", (NEW_YEAR, NEW_YEAR))
    os.utime(vault / "sea" / "ferry.md", (NEW_YEAR - 1, NEW_YEAR - 1))

    def found(*options: str) -> list[str]:
        code, out, _ = lamina(
            "notes", "search", "ferry ferries", "--lexical", "--json", *options, cwd=vault
        )
        assert code == 0
        return [hit["path"] for hit in json.loads(out)]

    assert found("--since", "2026-01-01", "--until", "2026-01-02") == ["sea/log.md"]
    assert found("--until", "2026-01-01") == ["sea/ferry.md"]
    assert found("--until", "2026-01-01T00:00:01") == found("--until", "2026-01-02")


def test_top_is_how_many_passages_there_are(vault: Path) -> None:
    assert len(json.loads(search("leave late", "--json", "--top", "2", cwd=vault))) == 2


def test_a_search_that_finds_nothing_says_where_it_looked(vault: Path) -> None:
    assert search("zebra", cwd=vault) == "no match in 4 notes\n"
    assert search("zebra", "--json", cwd=vault) == "[]\n"


def test_a_single_note_is_one_note(notes: Path) -> None:
    assert search("submarine", cwd=notes) == "no match in 1 note\n"
    assert output("notes", "check", cwd=notes) == "1 note, no problems\n"


def test_a_place_without_notes_is_said(vault: Path) -> None:
    code, out, err = lamina("notes", "search", "--lexical", "pier", "--in", "none", cwd=vault)
    assert (code, out) == (0, "no match in 0 notes\n")
    assert err.startswith("warning: no note is ")


def test_a_search_in_another_folder(vault: Path, tmp_path: Path) -> None:
    assert search("pier", "-w", str(vault), cwd=tmp_path).startswith("words  plan.md#L1-L3")


def test_what_changed_is_seen_by_the_next_search(vault: Path) -> None:
    assert search("lighthouse", cwd=vault) == "no match in 4 notes\n"
    (vault / "new.md").write_text("The lighthouse is red.\n", "utf-8")
    assert search("lighthouse", cwd=vault).startswith("words  new.md#L1-L1\n")
    (vault / "new.md").unlink()
    assert search("lighthouse", cwd=vault) == "no match in 4 notes\n"


def test_nothing_of_a_note_can_steer_the_terminal(vault: Path) -> None:
    evil = "\x1b]0;owned\x07"
    (vault / f"evil{evil}.md").write_text(f"# Zebra {evil}\n\nZebra {evil} crossing.\n", "utf-8")
    (vault / "tag.md").write_text(f"#zebra{evil}\n", "utf-8")
    (vault / "link.md").write_text(f"[[gone{evil}]]\n", "utf-8")
    told = search("zebra", cwd=vault)
    told += lamina("notes", "check", cwd=vault)[1] + output("notes", "tags", cwd=vault)
    told += output("notes", "query", "LIST", cwd=vault)
    assert "evil" in told
    assert "\x1b" not in told
    assert "\x07" not in told


def test_a_name_cannot_begin_a_line_of_its_own(vault: Path) -> None:
    name = "new\n 0.99  faked\u2028x\r.md"
    (vault / name).write_text("Zebra crossing. [[gone]]\n", "utf-8")
    assert search("zebra", cwd=vault) == (
        "words  new\\x0a 0.99  faked\\u2028x\\x0d.md#L1-L1\n       Zebra crossing. [[gone]]\n"
    )
    found = lamina("notes", "check", cwd=vault)[1].splitlines()[0]
    assert (
        found == "new\\x0a 0.99  faked\\u2028x\\x0d.md: broken link: 'gone' is not in the workspace"
    )


def test_line_endings_of_windows_do_not_show(vault: Path) -> None:
    (vault / "crlf.md").write_bytes(b"# Zoo\r\n\r\nA zebra.\r\n\r\n## Next\r\n\r\nOther.\r\n")
    assert search("zebra", cwd=vault) == "words  crlf.md#L1-L3  ·  Zoo\n       # Zoo A zebra.\n"
    (hit,) = json.loads(search("zebra", "--json", cwd=vault))
    # A program gets the lines as the note holds them, as if they were attached.
    assert hit["text"] == "# Zoo\r\n\r\nA zebra.\r"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("search", "  "), "the query is empty"),
        (("search", "x", "--top", "0"), "greater than or equal to 1"),
        (("search", "x", "--since", "yesterday"), "'yesterday' does not match"),
        (("search", "x", "-w", "none"), "'none' does not exist"),
        (("search", "x", "--in", "#"), "--in '#' is neither a folder nor a tag"),
        (("search", "x", "--in", ""), "--in '' is neither a folder nor a tag"),
        (("tags", "-w", "plan.md"), "'plan.md' is a file"),
    ],
)
def test_what_is_said_wrong_is_refused(
    vault: Path, arguments: tuple[str, ...], problem: str
) -> None:
    said = error("notes", *arguments, cwd=vault, code=2)
    assert problem in " ".join(said.replace("│", " ").split())


def test_the_notes_can_be_indexed_beforehand(vault: Path) -> None:
    code, out, err = lamina("notes", "index", "--lexical", cwd=vault)
    assert (code, out, err) == (0, "4 notes are ready to be searched\n", BY_WORDS)


def test_an_index_that_cannot_be_kept_is_not_called_ready(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("not a folder")
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    code, out, err = lamina("notes", "index", "--lexical", cwd=vault)
    assert (code, out) == (
        1,
        "4 notes are indexed in memory only: 4 new passages could not be saved, and will be indexed "
        "again\n",
    )
    assert "data/index.sqlite cannot be read" in " ".join(err.split())


def test_one_note_is_not_called_notes(notes: Path) -> None:
    _, out, _ = lamina("notes", "index", "--lexical", cwd=notes)
    assert out == "1 note is ready to be searched\n"
    assert search("harbour", cwd=notes) == "no match in 1 note\n"
    assert output("notes", "check", cwd=notes) == "1 note, no problems\n"


def test_an_empty_folder_has_nothing_to_search(notes: Path) -> None:
    (notes / "plan.md").unlink()
    code, out, err = lamina("notes", "search", "--lexical", "pier", cwd=notes)
    assert (code, out) == (0, "no match in 0 notes\n")
    assert err == "warning: there are no notes here, so nothing was searched\n"
    assert output("notes", "tags", cwd=notes) == "no note of 0 has a tag\n"
    assert output("notes", "check", cwd=notes) == "0 notes, no problems\n"


# -- query ---------------------------------------------------------------------------------------


def test_a_query_is_answered_as_it_is_in_a_note(vault: Path) -> None:
    assert output("notes", "query", "TABLE status FROM #draft SORT file.name", cwd=vault) == (
        "| file | status |\n|---|---|\n| sea/ferry.md | open |\n| sea/log.md |  |\n"
    )
    assert output("notes", "query", 'LIST FROM "land"', cwd=vault) == "- land/train.md\n"
    assert output("notes", "query", "LIST FROM #none", cwd=vault) == "No notes fit this query.\n"


def test_a_query_may_ask_for_tasks_and_fields(vault: Path) -> None:
    (vault / "todo.md").write_text("pace:: 3\n- [ ] sail [due:: 2026-01-31]\n", "utf-8")
    assert output("notes", "query", "TASK WHERE due < date(now) + dur(9 years)", cwd=vault) == (
        "- todo.md\n  - [ ] sail [due:: 2026-01-31]\n"
    )
    table = output("notes", "query", "TABLE WITHOUT ID pace * 2 AS double WHERE pace", cwd=vault)
    assert table == "| double |\n|---|\n| 6 |\n"


def test_a_query_that_is_wrong_says_where(vault: Path) -> None:
    assert error("notes", "query", "LIST FROM", cwd=vault).startswith("error: query, line 1, ")
    assert error("notes", "query", "", cwd=vault) == (
        "error: query, line 1, column 1: expected LIST, TABLE, TASK or CALENDAR, found the end of the query\n"
    )


# -- tags ----------------------------------------------------------------------------------------


def test_tags_are_counted_however_they_are_spelled(vault: Path) -> None:
    assert output("notes", "tags", cwd=vault) == "     2  #Draft\n     1  #sea/port\n"
    assert json.loads(output("notes", "tags", "--json", cwd=vault)) == [
        {"tag": "Draft", "notes": 2},
        {"tag": "sea/port", "notes": 1},
    ]


def test_notes_without_tags_say_so(notes: Path) -> None:
    assert output("notes", "tags", cwd=notes) == "no note of 1 has a tag\n"
    assert output("notes", "tags", "--json", cwd=notes) == "[]\n"


# -- check ---------------------------------------------------------------------------------------


def test_sound_notes_have_nothing_wrong(vault: Path) -> None:
    (vault / "links.md").write_text(
        "[[plan]] [[sea/log]] [x](land/train.md) ![[photo.png]] [[ferry#North]]\n", "utf-8"
    )
    (vault / "photo.png").write_bytes(b"")
    assert output("notes", "check", cwd=vault) == "5 notes, no problems\n"
    assert output("notes", "check", "--json", cwd=vault) == "[]\n"


def break_notes(vault: Path) -> None:
    (vault / "a.md").write_text("[[gone]] ![[lost]] [[plan]] [[gone]]\n", "utf-8")
    (vault / "b.md").write_text("[[log]]\n", "utf-8")
    (vault / "land" / "log.md").write_text("x\n", "utf-8")
    (vault / "c.md").write_text("---\na: [\n---\n", "utf-8")
    (vault / "d.md").write_text("```lamina-query\nLIST FROM\n```\n", "utf-8")
    (vault / "e.md").write_bytes(b"a\0b")


def test_a_check_lists_what_is_wrong_and_where(vault: Path) -> None:
    break_notes(vault)
    code, out, err = lamina("notes", "check", cwd=vault)
    assert (code, err) == (1, "")
    *lines, last = out.splitlines()
    assert [": ".join(line.split(": ")[:2]) for line in lines] == [
        "e.md: unreadable",
        "a.md: broken link",
        "a.md: broken link",
        "b.md: ambiguous link",
        "c.md: frontmatter",
        "d.md: query",
    ]
    assert lines[0] == "e.md: unreadable: e.md is not text"
    assert "'gone' is not in the workspace" in lines[1]
    assert "'land/log.md', 'sea/log.md'" in lines[3]
    assert "line 3" in lines[4]
    assert last == (
        "9 notes: broken link 2, unreadable 1, ambiguous link 1, frontmatter 1, query 1"
    )


def test_a_check_names_every_query_that_is_left_out_and_why(vault: Path) -> None:
    (vault / "q.md").write_text(
        "```dataview\nTABLE a FROM #b\n```\n```dataview\nLIST nope(1)\n```\n"
        "```dataviewjs\ndv.pages()\n```\n```query\nsort:x\n```\n`= 1 +` `= 1 + 1` `$= dv.x`\n",
        "utf-8",
    )
    code, out, _ = lamina("notes", "check", cwd=vault)
    assert code == 1
    assert out.splitlines() == [
        "q.md: query: query, line 1, column 6: there is no function 'nope'",
        "q.md: script: dataviewjs: scripts of notes are not run; it is left out",
        "q.md: search: query, line 1, column 1: there is no place 'sort:'; there are file:, path:, "
        "content:, tag:, line:, block:, section:, task:, task-todo:, task-done:, match-case:, "
        "ignore-case:",
        "q.md: query: `= 1 +`: query, line 1, column 6: expected a field, a value or a function, "
        "found the end of the query",
        "q.md: script: $= dv.x: scripts of notes are not run; it is left out",
        "5 notes: query 2, script 2, search 1",
    ]


def test_a_check_for_machines_says_the_same(vault: Path) -> None:
    break_notes(vault)
    code, out, _ = lamina("notes", "check", "--json", cwd=vault)
    assert code == 1
    found = [(load["path"], load["what"]) for load in json.loads(out)]
    assert found == [
        ("e.md", "unreadable"),
        ("a.md", "broken link"),
        ("a.md", "broken link"),
        ("b.md", "ambiguous link"),
        ("c.md", "frontmatter"),
        ("d.md", "query"),
    ]


def test_commands_leave_the_folder_as_it_was(vault: Path) -> None:
    def look() -> list[tuple[str, float]]:
        return sorted((str(path), path.stat().st_mtime) for path in vault.rglob("*"))

    before = look()
    search("pier", cwd=vault)
    output("notes", "tags", cwd=vault)
    output("notes", "check", cwd=vault)
    assert look() == before


# -- names that several files have ---------------------------------------------------------------


@pytest.fixture
def translations(tmp_path: Path) -> Path:
    """A vault with the same names in several top folders."""
    vault = tmp_path / "help"
    for top in ("de", "en", "fr"):
        (vault / top / "plugins").mkdir(parents=True)
        (vault / top / "plugins" / "Graph.md").write_text("# Graph\n", "utf-8")
        (vault / top / "plugins" / "x.png").write_bytes(b"")
        text = "[[Graph]] [[Graph|again]] ![[x.png]] [[Start]]\n"
        (vault / top / "Start.md").write_text(text, "utf-8")
    (vault / "Home.md").write_text("[[Graph]] [[en/Start]]\n", "utf-8")
    return vault


def test_a_check_counts_what_the_nearest_decided_and_names_what_is_open(translations: Path) -> None:
    code, out, _ = lamina("notes", "check", cwd=translations)
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == (
        "Home.md: ambiguous link: 'Graph' may mean any of 'de/plugins/Graph.md', "
        "'en/plugins/Graph.md', 'fr/plugins/Graph.md': give its path"
    )
    assert lines[1] == (
        "10 links and pictures have a name that several files share: 9 lead to the nearest "
        "(below 6, same folder 3), 1 ambiguous"
    )
    assert lines[2] == (
        "  de/Start.md: 'Graph' is de/plugins/Graph.md (below its folder), "
        "not 'en/plugins/Graph.md', 'fr/plugins/Graph.md'"
    )
    assert lines[-2:] == [
        "  ... and 4 more: --all lists them",
        "7 notes: ambiguous link 1",
    ]
    everything = lamina("notes", "check", "--all", cwd=translations)[1]
    assert "--all" not in everything
    assert everything.count("is de/plugins/x.png (below its folder)") == 1


def test_a_check_for_machines_has_every_decision_with_its_candidates(translations: Path) -> None:
    _, out, _ = lamina("notes", "check", "--json", cwd=translations)
    rows = json.loads(out)
    assert [row["what"] for row in rows].count("decided link") == 6
    (opened,) = [row for row in rows if row["what"] == "ambiguous link"]
    assert len(opened["candidates"]) == 3
    picture = next(row for row in rows if row["what"] == "decided picture")
    assert (picture["path"], picture["meaning"], picture["nearness"]) == (
        "de/Start.md", "de/plugins/x.png", "below",
    )  # fmt: skip
    assert picture["candidates"] == [f"{top}/plugins/x.png" for top in ("de", "en", "fr")]


def test_what_was_decided_is_not_wrong(translations: Path) -> None:
    (translations / "Home.md").unlink()
    code, out, _ = lamina("notes", "check", cwd=translations)
    assert (code, out.splitlines()[-1]) == (0, "6 notes, no problems")


def test_pictures_that_are_nowhere_are_named(vault: Path) -> None:
    text = "![[gone.png]] ![](land/none.png) ![x][p]\n\n[p]: also%20gone.png\n"
    (vault / "p.md").write_text(text, "utf-8")
    (vault / "none.png").write_bytes(b"")
    lines = lamina("notes", "check", cwd=vault)[1].splitlines()
    assert lines[:2] == [
        "p.md: broken picture: 'gone.png' is not in the workspace",
        "p.md: broken picture: 'land/none.png' is not in the workspace",
    ]


def test_much_of_one_kind_is_cut_short_and_counted(vault: Path) -> None:
    text = "".join(f"[[gone {number}]]\n" for number in range(100))
    (vault / "many.md").write_text(text, "utf-8")
    lines = lamina("notes", "check", cwd=vault)[1].splitlines()
    assert len(lines) == 42
    assert lines[-2:] == [
        "... and 60 more of kind 'broken link': --all lists them",
        "5 notes: broken link 100",
    ]
    assert len(lamina("notes", "check", "--all", cwd=vault)[1].splitlines()) == 101
