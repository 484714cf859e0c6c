"""Heads between lines of `---`: whatever is wrong with one, the text behind it is kept."""

# Problems as they are on a screen.
# ruff: noqa: E501

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.adapters.agents.files import guide, problems_of, read

from lamina.adapters.agents.fields import ProblemList
from lamina.adapters.agents.markdown_file import read_markdown

OWN = {"agent.yaml": "name: a"}


def rule(tmp_path: Path, text: str | bytes) -> tuple[tuple[object, ...], list[str]]:
    """The rule that a file makes, without its place, and what is said of it."""
    agent = read(tmp_path, OWN | {"rules/r.md": text})
    (made,) = agent.guides
    fields = (made.name, made.description, made.level, made.include, made.globs, made.text)
    return fields, problems_of(agent, tmp_path)


def test_a_file_without_a_head_is_a_rule_that_is_added_by_hand(tmp_path: Path) -> None:
    fields, problems = rule(tmp_path, "Just words.\n---\nand a line.\n")
    assert fields == ("r", "", 500, "manual", (), "Just words.\n---\nand a line.")
    assert len(problems) == 1
    assert problems[0].startswith("W rules/r.md:1: has no head between lines of '---'")


@pytest.mark.parametrize(
    ("text", "fields", "problems"),
    [
        (
            "---\ndescription: Take: care\ninclude: always\n---\nBody",
            ("r", "Take: care", 500, "always", (), "Body"),
            ["W rules/r.md:2: description: 'Take: care' was read as it is meant; put it in quotes "
             "(mapping values are not allowed here)"],
        ),
        (
            "---\nglobs: **/*.ts, src/*.{js,jsx}\npriority: 3\n---\nBody",
            ("r", "", 3, "manual", ("**/*.ts", "src/*.{js,jsx}"), "Body"),
            ["W rules/r.md:2: globs: '**/*.ts, src/*.{js,jsx}' was read as it is meant; put it in "
             "quotes: what begins with * is no YAML"],
        ),
        (
            "---\nglobs: [a.ts\n---\nBody",
            ("r", "", 500, "manual", ("[a.ts",), "Body"),
            ["W rules/r.md:2: globs: '[a.ts' was read as it is meant; put it in quotes (while "
             "parsing a flow sequence expected ',' or ']', but got '<stream end>')"],
        ),
        (
            "---\nglobs:\n  - **/*.ts\n  - '*.js'\n---\nBody",
            ("r", "", 500, "manual", ("**/*.ts", "*.js"), "Body"),
            ["W rules/r.md:2: globs: the list was read as it is meant; put it in quotes: what "
             "begins with * is no YAML"],
        ),
        (
            "---\nglobs:\n\t- a.ts\ninclude: agent\ndescription: d\n---\nBody",
            ("r", "d", 500, "agent", ("a.ts",), "Body"),
            ["W rules/r.md:2: globs: tabs are not YAML; they were read as spaces"],
        ),
        (
            "---\nname: x\nname: y\n---\nBody",
            ("y", "", 500, "manual", (), "Body"),
            ["E rules/r.md:3: 'name' is written twice, at line 2 and here; this counts"],
        ),
        (
            "---\npriority: 1500\ninclude: sometimes\n---\nBody",
            ("r", "", 999, "manual", (), "Body"),
            ["E rules/r.md:2: priority: is 1500, and goes from 0 to 999; 999 is used",
             "E rules/r.md:3: include: has to be one of always, manual, agent, not 'sometimes'; "
             "manual is used"],
        ),
        (
            "---\npriority: high\ninclude: [always]\ndescription: {a: b}\nglobs: {a: b}\n---\nBody",
            ("r", "", 500, "manual", (), "Body"),
            ["E rules/r.md:4: description: has to be a text, not an object",
             "E rules/r.md:2: priority: has to be a whole number from 0 to 999, not 'high'; "
             "500 is used",
             "E rules/r.md:3: include: has to be one of always, manual, agent, not a list; manual "
             "is used",
             "E rules/r.md:5: globs: has to be a list of texts, not an object"],
        ),
        (
            "---\ninclude: always\ndescription: d\n\n# Title\nBody",
            ("r", "d", 500, "always", (), "# Title\nBody"),
            ["E rules/r.md:1: the head that begins here has no end; a line '---' is missing; it "
             "was taken to end behind line 3"],
        ),
        (
            "---\nWords, not entries.",
            ("r", "", 500, "manual", (), "---\nWords, not entries."),
            ["E rules/r.md:1: the head that begins here has no end; a line '---' is missing, and "
             "all of the file is taken for its text",
             "W rules/r.md:1: has no head between lines of '---', so it joins only when it is "
             "added by hand; 'include: always' or 'include: agent' there changes that"],
        ),
        (
            "\n\n---\ninclude: always\n---\nBody",
            ("r", "", 500, "always", (), "Body"),
            ["W rules/r.md:1: empty lines stand before the head; it has to be at the top"],
        ),
        (
            "---\n- a\n- b\n---\nBody",
            ("r", "", 500, "manual", (), "Body"),
            ["E rules/r.md:2: the head has to be entries like 'description: ...', not a list"],
        ),
        (
            "---\nname: 2024-13-45\ndescription: yes\n---\nBody",
            ("2024-13-45", "yes", 500, "manual", (), "Body"),
            [],
        ),
        (
            "---\nstray words\nname: x: y\n---\nBody",
            ("x: y", "", 500, "manual", (), "Body"),
            ["E rules/r.md:2: 'stray words' is no entry like 'name: value'",
             "W rules/r.md:3: name: 'x: y' was read as it is meant; put it in quotes (mapping "
             "values are not allowed here)",
             "W rules/r.md:3: the name 'x: y' has spaces: a message has to put it in quotes; "
             "dashes are easier to type"],
        ),
        (
            "---\nalwaysApply: true\n---\nBody",
            ("r", "", 500, "manual", (), "Body"),
            ["W rules/r.md:2: 'alwaysApply' means nothing here and is not used; known are "
             "description, globs, include, name, priority"],
        ),
        ("---\ninclude: always\n---\n", ("r", "", 500, "always", (), ""),
         ["W rules/r.md:4: has no text"]),
        ("", ("r", "", 500, "manual", (), ""), ["W rules/r.md:1: has no text"]),
    ],
)  # fmt: skip
def test_an_odd_head_is_read_as_far_as_it_goes(
    tmp_path: Path, text: str, fields: tuple[object, ...], problems: list[str]
) -> None:
    assert rule(tmp_path, text) == (fields, problems)


def test_marks_line_ends_and_other_encodings_are_read_and_named(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        OWN
        | {
            "rules/bom.md": b"\xef\xbb\xbf---\ninclude: always\n---\nA",
            "rules/crlf.md": b"---\r\ninclude: always\r\n---\r\nA\r\nB\r\n",
            "rules/latin.md": b"---\ninclude: always\n---\nCaf\xe9 \x80\n",
            "rules/sixteen.md": "---\ninclude: always\n---\nÄ".encode("utf-16"),
            "rules/broken.md": b"---\ninclude: always\n---\nB\x81\n",
            "rules/binary.md": b"---\n---\n\x00\x01",
        },
    )
    texts = {guide.name: (guide.text, guide.include) for guide in agent.guides}
    assert texts == snapshot(
        {
            "bom": ("A", "always"),
            "broken": ("B�", "always"),
            "crlf": ("A\nB", "always"),
            "latin": ("Café €", "always"),
            "sixteen": ("Ä", "always"),
        }
    )
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "E rules/binary.md:3: is not text: it holds a byte 0; it is not read",
            "W rules/bom.md:1: begins with a byte order mark, which was left out",
            "W rules/broken.md:4: is not UTF-8 (byte 0x81); such bytes are shown as �. Save it as UTF-8",
            "W rules/crlf.md:1: has line ends of Windows; they are read as plain ones",
            "W rules/latin.md:4: is not UTF-8 (byte 0xe9); it was read as Windows-1252. Save it as UTF-8",
            "W rules/sixteen.md:1: is UTF-16 and was read as that; save it as UTF-8",
        ]
    )


def test_two_of_one_name_are_both_kept(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        OWN
        | {
            "rules/a/style.md": "---\n---\nA",
            "rules/b/style.md": "---\n---\nB",
            "rules/c.md": "---\nname: style\n---\nC",
            "references/style.md": "---\n---\nD",
        },
    )
    named = {(guide.kind, guide.name): guide.text for guide in agent.guides}
    assert named == {
        ("rule", "style"): "A",
        ("rule", "b-style"): "B",
        ("rule", "style-2"): "C",
        ("reference", "style"): "D",
    }
    assert problems_of(agent, tmp_path)[0].startswith(
        "E rules/b/style.md:3: 'style' is also the name of the rule in rules/a/style.md:3; "
        "this one is called 'b-style'"
    )


@pytest.mark.parametrize(
    ("name", "kept", "words"),
    [
        ("my rule", "my rule", "has spaces"),
        ("a/b", "a/b", "looks like a path"),
        ("Größe", "Größe", ""),
        ("Gro\u0308ße", "Größe", "holds what cannot be seen or is composed"),
        ("half \\ud800", "half ���", "has spaces"),
        ("ru\u200ble\u202e", "rule", "holds what cannot be seen or is composed"),
        ("\u200b", "r", "holds what cannot be seen or is composed"),
    ],
)
def test_names_that_are_odd_are_kept_and_named(
    tmp_path: Path, name: str, kept: str, words: str
) -> None:
    fields, problems = rule(tmp_path, f'---\nname: "{name}"\n---\nBody')
    assert fields[0] == kept
    assert [words in problem for problem in problems] == ([True] if words else [])


def test_a_long_text_is_kept_and_joins_only_by_hand(tmp_path: Path) -> None:
    body = "word " * 2_000_000
    agent = read(tmp_path, OWN | {"rules/r.md": f"---\ninclude: always\n---\n{body}"})
    assert len(guide(agent, "r").text) == len(body.rstrip())
    assert guide(agent, "r").include == "manual"
    assert "too long to join by itself" in problems_of(agent, tmp_path)[0]


def test_a_file_over_the_limit_is_named_and_not_read(tmp_path: Path) -> None:
    agent = read(tmp_path, OWN | {"rules/r.md": b"x" * 20_000_001, "rules/s.md": "---\n---\nS"})
    assert [guide.name for guide in agent.guides] == ["s"]
    assert "over the limit of 20 MB" in problems_of(agent, tmp_path)[0]


LINES = st.text(alphabet="ab:-* \t\n#'\"{}[]&!|>%@`,", max_size=80)


@given(head=LINES, body=LINES)
def test_the_text_behind_a_head_is_never_lost(head: str, body: str) -> None:
    inside = "\n".join(line for line in head.split("\n") if line.rstrip() != "---")
    page = read_markdown(f"---\n{inside}\n---\n{body}", "r.md", ProblemList())
    assert page.body == body.strip("\n").rstrip()
    assert page.has_head


@given(st.text(max_size=200))
def test_any_text_is_a_page(text: str) -> None:
    page = read_markdown(text, "r.md", ProblemList())
    assert page.has_head or page.body == text.strip("\n").rstrip()


def test_a_head_as_long_as_a_text_is_one(tmp_path: Path) -> None:
    head = "\n".join(f"k{number}: *x" for number in range(6_000))
    fields, problems = rule(tmp_path, f"---\n{head}\n---\nBody")
    assert fields[-1] == f"---\n{head}\n---\nBody"
    assert "over the limit of 50,000; it is taken for a part of the text" in problems[0]


def test_of_one_file_two_hundred_problems_are_shown(tmp_path: Path) -> None:
    head = "\n".join(f"k{number}: 1" for number in range(500))
    agent = read(tmp_path, OWN | {"rules/r.md": f"---\n{head}\n---\nBody", "rules/s.md": "S"})
    shown = problems_of(agent, tmp_path)
    assert shown[200] == ("E rules/r.md: has more than 200 problems; the others are not shown")
    assert shown[201].startswith("W rules/s.md:1: has no head")
    assert len(shown) == 202
