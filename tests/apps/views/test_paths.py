"""The paths of a workspace, for completion."""

from pathlib import Path

from lamina.apps.views.mentions import match, scan


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", "utf-8")


def test_hidden_things_links_and_what_tools_install_are_not_found(tmp_path: Path) -> None:
    fill(tmp_path, "b.md", "a.md", ".git/x", ".env", "node_modules/y/z.js", "in/c.md")
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    assert scan(tmp_path) == ["a.md", "b.md", "in/c.md"]


def test_a_huge_folder_is_looked_at_in_part_and_near_files_come_first(tmp_path: Path) -> None:
    fill(tmp_path, "near.md", *(f"deep/in/{number}.md" for number in range(50)))
    found = scan(tmp_path, limit=20)
    assert found[0] == "near.md"
    assert 1 < len(found) <= 20
    assert scan(tmp_path, seconds=-1) == []
    assert scan(tmp_path / "gone") == []


def test_paths_match_anywhere_in_any_case_and_names_come_first() -> None:
    paths = ["docs/Plan.md", "plans/other.md", "a/my-plan.md", "plan.txt", "none.md"]
    assert match(paths, "PLAN") == ["plan.txt", "docs/Plan.md", "a/my-plan.md", "plans/other.md"]
    assert match(paths, "", limit=2) == ["none.md", "plan.txt"]
