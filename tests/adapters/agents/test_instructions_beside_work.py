"""AGENTS.md and CLAUDE.md: from the root of a project to where one works, with imports."""

# Problems as they are on a screen.
# ruff: noqa: E501

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.adapters.agents.files import problems_of, read, write

from lamina.adapters.agents import read_agent
from lamina.adapters.agents.imports import find_imports


def names(path: Path) -> list[tuple[str, int, str]]:
    return [(guide.name, guide.level, guide.text) for guide in read_agent(path).guides]


def test_agents_files_are_read_from_the_root_to_where_one_works(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "AGENTS.md": "Outside.",
            "repo/.git/HEAD": "",
            "repo/AGENTS.md": "Root.",
            "repo/api/AGENTS.md": "Closest.",
            "repo/api/inner/AGENTS.md": "Below.",
            "repo/web/AGENTS.md": "Beside.",
        },
    )
    assert names(tmp_path / "repo" / "api") == [
        ("AGENTS.md", 500, "Root."),
        ("api/AGENTS.md", 501, "Closest."),
    ]
    assert {guide.include for guide in read_agent(tmp_path / "repo/api").guides} == {"always"}
    assert names(tmp_path / "repo" / "api" / "AGENTS.md") == [("api/AGENTS.md", 500, "Closest.")]


def test_what_codex_would_drop_is_read_and_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "AGENTS.md": "a" * 30_000,
            "b/AGENTS.md": "b" * 4_000,
            "b/c/AGENTS.md": "c" * 10,
        },
    )
    agent = read_agent(tmp_path / "b" / "c")
    assert [len(guide.text) for guide in agent.guides] == [30_000, 4_000, 10]
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "W b/AGENTS.md: Codex reads 32,768 bytes of all AGENTS.md, and would drop all but 2,768 bytes of these 4,000; they are read whole here",
            "W b/c/AGENTS.md: Codex reads 32,768 bytes of all AGENTS.md, and would drop all of these 10; they are read whole here",
        ]
    )


def test_imports_are_rules_behind_what_imports_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "CLAUDE.md": "Read @docs/style.md, and @./plan.md.\nAsk @someone about @types/node.\n",
            "docs/style.md": "See @more/deep.md and @../CLAUDE.md",
            "docs/more/deep.md": "Deep.",
            "plan.md": "Plan, then @docs/more/deep.md",
        },
    )
    agent = read_agent(tmp_path)
    assert [(guide.name, guide.level) for guide in agent.guides] == [
        ("CLAUDE.md", 500),
        ("docs/style.md", 501),
        ("docs/more/deep.md", 502),
        ("plan.md", 503),
    ]
    assert problems_of(agent, tmp_path) == [
        "W docs/style.md:1: @../CLAUDE.md imports itself in a circle; it is read once"
    ]


def test_imports_that_cannot_be_are_named_with_their_line(tmp_path: Path) -> None:
    chain = {f"d{n}.md": f"@d{n + 1}.md" for n in range(8)}
    write(tmp_path, {"secret.md": "s3cret"})
    agent = read(
        tmp_path / "repo",
        chain
        | {
            ".git/HEAD": "",
            "CLAUDE.md": "# Title\n@missing.md\n@../secret.md\n@/etc/hostname\n@~/x.md\n@d0.md\n",
        },
    )
    assert [guide.name for guide in agent.guides] == [
        "CLAUDE.md", "d0.md", "d1.md", "d2.md", "d3.md", "d4.md",
    ]  # fmt: skip
    assert problems_of(agent, tmp_path / "repo") == snapshot(
        [
            "W CLAUDE.md:2: @missing.md is imported, and there is no such file",
            "E CLAUDE.md:3: @../secret.md leads out of '"
            + str(tmp_path / "repo")
            + "' and is not imported",
            "E CLAUDE.md:4: @/etc/hostname leads out of '"
            + str(tmp_path / "repo")
            + "' and is not imported",
            "E CLAUDE.md:5: @~/x.md leads out of '"
            + str(tmp_path / "repo")
            + "' and is not imported",
            "E d4.md:1: @d5.md is more than 5 imports away and is not imported",
        ]
    )
    assert "s3cret" not in str(agent.guides)


def test_a_link_out_of_the_root_is_not_imported(tmp_path: Path) -> None:
    write(tmp_path, {"secret.md": "s3cret", "repo/.git/HEAD": "", "repo/CLAUDE.md": "@in.md"})
    (tmp_path / "repo" / "in.md").symlink_to(tmp_path / "secret.md")
    agent = read_agent(tmp_path / "repo")
    assert "s3cret" not in str(agent.guides)
    assert "leads out of" in problems_of(agent, tmp_path / "repo")[0]


def test_a_file_that_many_ways_lead_to_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "Once.", "CLAUDE.local.md": "@AGENTS.md"})
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    agent = read_agent(tmp_path)
    assert [guide.text for guide in agent.guides] == ["Once."]
    assert agent.problems == ()
    assert [note.removeprefix(f"{tmp_path}/") for note in agent.notes] == [
        f"CLAUDE.md is {tmp_path}/AGENTS.md by a link, and is left out",
        f"CLAUDE.local.md only imports {tmp_path}/AGENTS.md, and is left out",
    ]


def test_a_file_that_says_the_same_as_another_is_sent_once(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        {
            "AGENTS.md": "Be kind.\n\n@more.md\n", "CLAUDE.md": "Be kind.\n\n@more.md",
            "more.md": "And brief.",
        },
    )  # fmt: skip
    assert [(guide.name, guide.text) for guide in agent.guides] == [
        ("AGENTS.md", "Be kind.\n\n@more.md"), ("more.md", "And brief."),
    ]  # fmt: skip
    assert agent.problems == ()
    assert agent.notes == (
        f"{tmp_path}/CLAUDE.md says the same as {tmp_path}/AGENTS.md, and is left out",
    )


def test_a_file_that_says_more_than_it_imports_is_sent(tmp_path: Path) -> None:
    files = {"AGENTS.md": "Be kind.", "CLAUDE.md": "@AGENTS.md\n\nAnd use tools."}
    agent = read(tmp_path, files)
    assert [guide.name for guide in agent.guides] == ["AGENTS.md", "CLAUDE.md"]
    assert agent.notes == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @a.md.", [(1, "a.md")]),
        ("(@a/b.md), @c.md; @d.md!", [(1, "a/b.md"), (1, "c.md"), (1, "d.md")]),
        ("a\n\n@my\\ notes.md", [(3, "my notes.md")]),
        ("mail me@a.md or @@a.md", []),
        ("`@a.md` and ``@b.md ` @c.md`` @d.md", [(1, "d.md")]),
        ("`open\n@a.md` @b.md", [(2, "b.md")]),
        ("` @a.md", [(1, "a.md")]),
        ("```\n@a.md\n```\n@b.md", [(4, "b.md")]),
        ("~~~md\n@a.md\n```\n@b.md\n~~~\n@c.md", [(6, "c.md")]),
        ("- x\n  ```\n  @a.md\n  ```\n  @b.md", [(5, "b.md")]),
        ("```\n@a.md", []),
        ("text\n\n    @a.md\n\n@b.md", [(5, "b.md")]),
        ("- item\n\n    @a.md", [(3, "a.md")]),
        ("``` `x` ```\n@a.md", [(2, "a.md")]),
        ("@a.md\n@a.md", [(1, "a.md")]),
    ],
)
def test_what_stands_in_code_is_no_import(text: str, found: list[tuple[int, str]]) -> None:
    assert list(find_imports(text)) == found


@given(st.text(alphabet="`~@a./ \n-\t", max_size=120))
def test_an_import_is_on_the_line_that_is_said(text: str) -> None:
    for line, path in find_imports(text):
        assert f"@{path}" in text.split("\n")[line - 1]


def test_rules_of_claude_join_with_paths_or_always(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        {
            ".claude/CLAUDE.md": "Hidden but read.",
            ".claude/rules/all.md": "All.",
            ".claude/rules/api/some.md": "---\npaths: src/**/*.{ts,tsx}, lib/*\n---\nSome.",
            ".claude/rules/list.md": "---\npaths:\n  - **/*.py\n---\nList.",
            ".claude/rules/notes.txt": "x",
        },
    )
    shown = [(guide.name, guide.include, guide.globs, guide.text) for guide in agent.guides]
    assert shown == [
        (".claude/CLAUDE.md", "always", (), "Hidden but read."),
        ("all", "always", (), "All."),
        ("some", "manual", ("src/**/*.{ts,tsx}", "lib/*"), "Some."),
        ("list", "manual", ("**/*.py",), "List."),
    ]
    assert [problem.partition(": ")[0] for problem in problems_of(agent, tmp_path)] == [
        "W .claude/rules/list.md:2",
        "W .claude/rules/notes.txt",
    ]


def test_links_are_followed_inside_the_root_and_not_out_of_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "outside/x.mdc": "---\n---\nOut",
            "repo/shared/in.mdc": "---\n---\nIn",
            "repo/.cursor/rules/own.mdc": "---\n---\nOwn",
        },
    )
    rules = tmp_path / "repo" / ".cursor" / "rules"
    (rules / "shared").symlink_to("../../shared")
    (rules / "outside").symlink_to(tmp_path / "outside")
    (rules / "one.mdc").symlink_to(tmp_path / "outside" / "x.mdc")
    (rules / "self").symlink_to(".")
    (rules / "gone.mdc").symlink_to("nowhere.mdc")
    (rules / "loop.mdc").symlink_to("loop.mdc")
    os.mkfifo(rules / "pipe.mdc")
    agent = read_agent(tmp_path / "repo")
    assert sorted(guide.text for guide in agent.guides) == ["In", "Own"]
    assert sorted(problem.partition(" ")[2].partition(":")[0] for problem in problems_of(agent, rules)) == [
        "gone.mdc", "loop.mdc", "one.mdc", "outside", "pipe.mdc",
    ]  # fmt: skip
