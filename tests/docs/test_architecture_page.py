"""The pages that describe the code name files that exist, and rooms that the contract knows."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lamina"
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "docs/theory.md", "docs/decisions.md")
# What looks like a path of the package, in backticks: `room/module.py`, `room/folder/`.
PATH = re.compile(
    r"`((?:src/lamina/|tests/|bench/|docs/)?[a-z_0-9]+(?:/[a-z_0-9]+)*(?:/|\.py|\.toml)"
    r"|(?:docs|bench)/\w+\.md)`"
)


def _exists(path: str) -> bool:
    return (ROOT / path).exists() or (SOURCE / path).exists()


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    paths = PATH.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert paths or page == "docs/decisions.md"
    assert [path for path in paths if not _exists(path)] == []


def _contracts() -> dict[str, dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return {contract["containers"][0]: contract for contract in contracts if "layers" in contract}


def test_the_table_of_floors_lists_every_floor_and_every_room_in_the_order_of_the_contract() -> (
    None
):
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = text.split("## Floors", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    floors = {row.split("|")[1].strip(): row.split("|")[2] for row in rows}
    contracts = _contracts()
    layers = list(reversed(contracts["lamina"]["layers"]))
    assert [re.findall(r"`(\w+)(?:/|\.py)`", floor) for floor in floors] == [
        layer.split(" | ") for layer in layers
    ]
    for floor in ("core", "engine", "apps"):
        rooms = list(reversed(contracts[f"lamina.{floor}"]["layers"]))
        named = re.findall(r"`(\w+)`", floors[f"`{floor}/`"])
        assert [name for name in named if name in rooms] == rooms
    neighbours = {
        name for layer in contracts["lamina.adapters"]["layers"] for name in layer.split(" | ")
    }
    assert neighbours <= set(re.findall(r"`(\w+)`", floors["`adapters/`"]))


def test_no_page_speaks_of_documents_that_are_not_here() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
