"""Rules as Cursor keeps them, with all that people write into their heads."""

# Problems as they are on a screen.
# ruff: noqa: E501

from pathlib import Path

import pytest
from inline_snapshot import snapshot
from tests.adapters.agents.files import guide, problems_of, read

HEADS = {
    "always": "description: d\nglobs: **/*.ts\nalwaysApply: true",
    "by-files": "description: d\nglobs: **/*.ts,*.{js,jsx}\nalwaysApply: false",
    "by-list": 'globs: ["a/**", "b.md, c.md"]',
    "by-lines": "globs:\n  - **/*.py\n  - '*.pyi'",
    "by-question": "description: When the moon is full: howl\nglobs:\nalwaysApply: false",
    "by-hand": "alwaysApply: false",
    "bare": "",
    "as-text": 'alwaysApply: "True"\nglobs: ""',
}


def test_when_a_rule_joins_is_read_from_its_head(tmp_path: Path) -> None:
    files = {f"{name}.mdc": f"---\n{head}\n---\n# {name}\n" for name, head in HEADS.items()}
    agent = read(tmp_path, {f".cursor/rules/{name}": text for name, text in files.items()})
    shown = {guide.name: (guide.include, guide.globs) for guide in agent.guides}
    assert shown == {
        "always": ("always", ()),
        "by-files": ("manual", ("**/*.ts", "*.{js,jsx}")),
        "by-list": ("manual", ("a/**", "b.md", "c.md")),
        "by-lines": ("manual", ("**/*.py", "*.pyi")),
        "by-question": ("agent", ()),
        "by-hand": ("manual", ()),
        "bare": ("manual", ()),
        "as-text": ("always", ()),
    }
    assert guide(agent, "by-question").description == "When the moon is full: howl"
    assert [guide.text for guide in agent.guides] == [f"# {name}" for name in sorted(HEADS)]
    assert {problem.level for problem in agent.problems} == {"warning"}
    # The same files, without the folders around them.
    bare = read(tmp_path / "copied", files)
    assert {guide.name: (guide.include, guide.globs) for guide in bare.guides} == shown


def test_a_pattern_that_fits_every_file_is_named_and_its_rule_is_searched_for_too(
    tmp_path: Path,
) -> None:
    text = "---\ndescription: d\nglobs: **/*\nalwaysApply: false\n---\nBody"
    agent = read(tmp_path, {"wide.mdc": text})
    assert (agent.guides[0].include, agent.guides[0].globs) == ("agent", ("**/*",))
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "W wide.mdc:3: globs: '**/*' was read as it is meant; put it in quotes: what begins with * is no YAML",
            "W wide.mdc:3: globs: '**/*' fits every file, so it joins with whatever is attached, and is searched for by its description; write 'alwaysApply: true', or patterns that tell files apart",
        ]
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("No head.", "W r.mdc:1: has no head between lines of '---'"),
        ("---\nalwaysApply: maybe\n---\nB", "E r.mdc:2: alwaysApply: has to be true or false"),
        ("---\nglob: a\n---\nB", "W r.mdc:2: 'glob' means nothing here and is not used; did you"),
        ("---\nalwaysApply: true\n---\n```\ncode", "W r.mdc:4: a code block begins here and has"),
    ],
)
def test_an_odd_rule_is_a_rule(tmp_path: Path, text: str, problem: str) -> None:
    agent = read(tmp_path, {"r.mdc": text})
    assert len(agent.guides) == 1
    assert problems_of(agent, tmp_path)[0].startswith(problem)


def test_rules_in_folders_and_files_that_are_none(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        {
            ".cursor/rules/a/one.mdc": "---\n---\n1",
            ".cursor/rules/b/one.mdc": "---\n---\n2",
            ".cursor/rules/b/readme.md": "x",
        },
    )
    assert [(guide.name, guide.text) for guide in agent.guides] == [("one", "1"), ("b-one", "2")]
    assert problems_of(agent, tmp_path)[-1] == (
        "W .cursor/rules/b/readme.md: is not read: Cursor's rules end in .mdc"
    )


def test_the_same_text_twice_is_named(tmp_path: Path) -> None:
    agent = read(tmp_path, {"a.mdc": "---\n---\nSame", "b.mdc": "---\n---\nSame"})
    assert len(agent.guides) == 2
    assert problems_of(agent, tmp_path) == [
        "W b.mdc:3: has the same text as 'a'; where both join it is sent twice"
    ]
