"""Files of skills: what is inside can be read, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from lamina.adapters.tools.skill_files import SkillTools
from lamina.adapters.tools.toolbox import Toolbox
from lamina.core.schemas import check_arguments
from lamina.core.values.agent import Skill

pytestmark = pytest.mark.anyio


@pytest.fixture
def skills(tmp_path: Path) -> SkillTools:
    folder = tmp_path / "pdf"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text("Body")
    (folder / "references" / "fields.md").write_text("Fields — all of them.")
    (folder / "logo.png").write_bytes(b"\x89PNG\x00")
    (folder / "long.txt").write_text("x" * 200_000)
    (folder / "huge.txt").write_bytes(b"x" * 10_000_001)
    (tmp_path / "secret.txt").write_text("s3cret")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in.txt").symlink_to("SKILL.md")
    return SkillTools([Skill(name="pdf", folder=str(folder)), Skill(name="tides", folder="gone")])


async def read(skills: SkillTools, path: Any, skill: Any = "pdf") -> tuple[bool, str]:
    output = await skills.call("read_skill_file", {"skill": skill, "path": path})
    return not output.is_error, output.text


async def test_one_free_tool_is_offered(skills: SkillTools) -> None:
    (offered,) = (await skills.toolset()).tools
    assert (offered.id, offered.permission, offered.include) == (
        "tool:/read_skill_file",
        "free",
        "always",
    )
    parameters = offered.definition.parameters
    assert check_arguments(parameters, {"skill": "pdf", "path": "a"}) is None
    assert check_arguments(parameters, {"skill": "doc", "path": "a"}) is not None
    assert (await SkillTools([]).toolset()).tools == ()
    async with Toolbox(skills) as toolbox:
        assert len((await toolbox.toolset()).tools) == 1


async def test_files_and_folders_inside_are_read(skills: SkillTools) -> None:
    assert await read(skills, "references/fields.md") == (True, "Fields — all of them.")
    assert await read(skills, "references\\fields.md") == (True, "Fields — all of them.")
    assert await read(skills, "./SKILL.md") == (True, "Body")
    assert await read(skills, "in.txt") == (True, "Body")
    assert await read(skills, "references") == (True, "references/fields.md")
    listed = (await read(skills, "."))[1].splitlines()
    assert {"SKILL.md", "references/fields.md", "logo.png"} <= set(listed)


async def test_a_long_file_is_cut_and_says_so(skills: SkillTools) -> None:
    fine, text = await read(skills, "long.txt")
    assert fine
    assert len(text) == 100_000
    assert "cut here: 200,000 characters in all" in text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../secret.txt", "is no path inside of its folder"),
        ("references/../../secret.txt", "is no path inside of its folder"),
        ("..\\secret.txt", "is no path inside of its folder"),
        ("/etc/hostname", "is no path inside of its folder"),
        ("C:\\secret.txt", "is no path inside of its folder"),
        ("a\0b", "is no path inside of its folder"),
        ("out.txt", "leads out of its folder and is not read"),
        ("up/secret.txt", "leads out of its folder and is not read"),
        ("logo.png", "is not text"),
        ("huge.txt", "has 10,000,001 bytes, over the limit of 10 MB"),
        ("references/field.md", "does not exist; did you mean 'references/fields.md'?"),
        ("x" * 5000, "File name too long"),
    ],
)
async def test_everything_else_is_refused_with_words(
    skills: SkillTools, path: str, words: str
) -> None:
    fine, text = await read(skills, path)
    assert not fine
    assert words in text
    assert "s3cret" not in text


async def test_a_call_that_is_wrong_says_what_is_right(skills: SkillTools) -> None:
    assert await read(skills, "a", "pdff") == (
        False,
        snapshot("There is no skill 'pdff'; did you mean 'pdf'?"),
    )
    assert await read(skills, 5) == (False, snapshot("'skill' and 'path' have to be texts"))
    assert not (await read(skills, "a.md", "tides"))[0]
    assert (await skills.call("other", {})).is_error
