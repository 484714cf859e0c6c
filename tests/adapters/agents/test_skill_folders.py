"""Skills: what there is is told always, a skill's text when it is chosen."""

# Problems as they are on a screen.
# ruff: noqa: E501

from pathlib import Path

import pytest
from inline_snapshot import snapshot
from tests.adapters.agents.files import guide, problems_of, read, write

from lamina.adapters.agents import read_agent
from lamina.core.values.agent import Skill

PDF = """\
---
name: pdf-forms
description: Fills forms in PDF files. Use when a person has one.
license: MIT
compatibility: Needs a shell
allowed-tools: Bash(git add:*) Read, Write
metadata:
  author: ada
  version: 1.0
---
# Forms

See references/fields.md.
"""


def test_a_skill_is_a_reference_that_is_searched_for_and_one_line_that_is_always_there(
    tmp_path: Path,
) -> None:
    agent = read(
        tmp_path,
        {
            ".claude/skills/pdf-forms/SKILL.md": PDF,
            "skills/tides/SKILL.md": "---\nname: tides\ndescription: Tells tides.\n---\nNoon.",
        },
    )
    assert agent.problems == ()
    assert agent.skills == (
        Skill(name="tides", description="Tells tides.", folder=str(tmp_path / "skills/tides")),
        Skill(
            name="pdf-forms",
            description="Fills forms in PDF files. Use when a person has one.",
            folder=str(tmp_path / ".claude/skills/pdf-forms"),
            license="MIT",
            compatibility="Needs a shell",
            tools=("Bash(git add:*)", "Read", "Write"),
            metadata={"author": "ada", "version": "1.0"},
        ),
    )
    assert [(guide.kind, guide.name, guide.include) for guide in agent.guides] == [
        ("reference", "tides", "agent"),
        ("reference", "pdf-forms", "agent"),
        ("reference", "skills", "always"),
    ]
    assert guide(agent, "pdf-forms").text == "# Forms\n\nSee references/fields.md."
    assert guide(agent, "skills").text == snapshot(
        """\
These skills are instructions for certain tasks. The text of a skill is the reference of its name; it joins when a question calls for it. Files that it speaks of are read with read_skill_file(skill, path).

- tides: Tells tides.
- pdf-forms: Fills forms in PDF files. Use when a person has one.\
"""
    )


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("description: d", "E x/SKILL.md:1: name: is missing; it has to be 'x', as its folder"),
        ("name: y\ndescription: d", "E x/SKILL.md:2: name: is 'y', and its folder 'x'"),
        ("name: X\ndescription: d", "E x/SKILL.md:2: name: 'X' has to be up to 64 of a-z, 0-9"),
        ("name: x", "E x/SKILL.md:1: description: is missing"),
        (f"name: x\ndescription: {'d' * 1025}", "E x/SKILL.md:3: description: has 1,025 char"),
        ("name: x\ndescription: d\nlicence: MIT", "W x/SKILL.md:4: 'licence' means nothing here"),
        ("name: x\ndescription: d\nallowed-tools: {a: b}", "E x/SKILL.md:4: allowed-tools: has"),
    ],
)
def test_a_skill_that_is_wrong_is_still_a_skill(tmp_path: Path, head: str, problem: str) -> None:
    agent = read(tmp_path, {"x/SKILL.md": f"---\n{head}\n---\nBody"})
    (made,) = agent.skills
    assert guide(agent, made.name).text == "Body"
    assert problems_of(agent, tmp_path)[0].startswith(problem)


def test_a_skill_without_a_head_and_two_of_one_name_are_kept(tmp_path: Path) -> None:
    skill = "---\nname: a\ndescription: d\n---\n"
    agent = read(
        tmp_path,
        {
            "skills/a/SKILL.md": f"{skill}1",
            ".agents/skills/a/SKILL.md": f"{skill}2",
            "b/SKILL.md": "3",
        },
    )
    assert {skill.name: guide(agent, skill.name).text for skill in agent.skills} == {
        "a": "1",
        "skill-a": "2",
        "b": "3",
    }


def test_one_skill_is_an_agent_by_its_folder_and_by_its_file(tmp_path: Path) -> None:
    agent = read(tmp_path / "pdf-forms", {"SKILL.md": PDF})
    assert [guide.name for guide in agent.guides] == ["pdf-forms", "skills"]
    assert read_agent(tmp_path / "pdf-forms" / "SKILL.md").skills == agent.skills


def test_skills_of_an_agent_of_our_own(tmp_path: Path) -> None:
    agent = read(tmp_path, {"agent.yaml": "name: a", "skills/pdf-forms/SKILL.md": PDF})
    assert [skill.name for skill in agent.skills] == ["pdf-forms"]


def test_a_skill_is_one_skill_however_many_links_lead_to_it(tmp_path: Path) -> None:
    text = "---\nname: tides\ndescription: Tells tides.\n---\nNoon."
    write(tmp_path, {".git/HEAD": "", "skills/tides/SKILL.md": text, "skills/tides/a.md": "A"})
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/skills").symlink_to("../skills")
    (tmp_path / ".agents/skills").mkdir(parents=True)
    (tmp_path / ".agents/skills/tides").symlink_to("../../skills/tides")
    (tmp_path / ".cursor/skills/other-name").mkdir(parents=True)
    (tmp_path / ".cursor/skills/other-name/SKILL.md").symlink_to("../../../skills/tides/SKILL.md")
    agent = read_agent(tmp_path)
    assert agent.problems == ()
    assert [(skill.name, skill.folder) for skill in agent.skills] == [
        ("tides", str(tmp_path / "skills/tides"))
    ]
    aliases = (".claude/skills/tides", ".agents/skills/tides", ".cursor/skills/other-name")
    assert agent.skills[0].aliases == tuple(str(tmp_path / alias) for alias in aliases)
    assert agent.notes[0] == f"{tmp_path}/.claude/skills has a link to a skill: each is read once"
    assert len(agent.notes) == 3
    assert [g.name for g in agent.guides].count("tides") == 1


def test_a_skill_that_leads_out_of_the_repository_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"outside/SKILL.md": PDF, "repo/.git/HEAD": "", "repo/AGENTS.md": "Hello."})
    (tmp_path / "repo/skills").mkdir()
    (tmp_path / "repo/skills/pdf-forms").symlink_to("../../outside")
    agent = read_agent(tmp_path / "repo")
    assert agent.skills == ()


HEAD = """\
---
name: deploy
description: Deploys.
when_to_use: When asked to ship.
disable-model-invocation: {hidden}
user-invocable: false
argument-hint: [target]
model: haiku
effort: low
context: fork
agent: Explore
hooks: {{PreToolUse: []}}
---
Ship it.
"""


def test_a_skill_for_people_alone_is_not_offered_to_the_model(tmp_path: Path) -> None:
    agent = read(tmp_path, {"skills/deploy/SKILL.md": HEAD.format(hidden="true")})
    assert agent.problems == ()
    (skill,) = agent.skills
    assert (skill.model_invocable, skill.user_invocable) == (False, False)
    assert skill.argument_hint == "[target]"
    assert skill.unused == ("model", "effort", "context", "agent", "hooks")
    assert [(g.name, g.include) for g in agent.guides] == [("deploy", "manual")]
    assert "nothing here acts upon model, effort, context, agent, hooks" in agent.notes[0]


def test_what_may_follow_a_skills_name_is_told_with_it(tmp_path: Path) -> None:
    agent = read(tmp_path, {"skills/deploy/SKILL.md": HEAD.format(hidden="false")})
    assert guide(agent, "deploy").include == "agent"
    assert "- deploy [target]: Deploys. When asked to ship." in guide(agent, "skills").text


def test_a_skill_with_paths_joins_with_files_that_fit(tmp_path: Path) -> None:
    text = "---\nname: sql\ndescription: SQL.\npaths: ['**/*.sql']\n---\nUpper case."
    agent = read(tmp_path, {"skills/sql/SKILL.md": text})
    assert (guide(agent, "sql").include, guide(agent, "sql").globs) == ("manual", ("**/*.sql",))
    assert agent.problems == ()


def test_a_link_to_a_skill_outside_is_not_read_and_is_named(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    write(elsewhere, {"secret/SKILL.md": PDF.replace("pdf-forms", "secret")})
    write(home, {".claude/skills/pdf-forms/SKILL.md": PDF})
    (home / ".claude/skills/secret").symlink_to(elsewhere / "secret")
    agent = read_agent(home)
    assert [skill.name for skill in agent.skills] == ["pdf-forms"]
    (problem,) = agent.problems
    assert problem.path.endswith(".claude/skills/secret")
    assert "leads out of" in problem.problem
