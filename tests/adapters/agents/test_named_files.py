"""Files that commands name: a change in one of them asks a person again (issue 16, A.3)."""

import os
from pathlib import Path

import pytest
from tests.adapters.agents.files import write

from lamina.adapters.agents import named_files
from lamina.adapters.agents.named_files import NamedFiles, TooManyFiles


def names(folder: Path, command: str, *args: str, **env: str) -> set[str]:
    """What is named, seen from the folder."""
    files = NamedFiles("s", folder, [folder]).read(command, args, env.values())
    return {os.path.relpath(file.path, folder) for file in files}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("node ./server.js", {"server.js"}),
        ("node server", {"server.js"}),
        ("./start.sh", {"start.sh"}),
        ("node --env-file=.env server.js", {".env", "server.js"}),
        ("node --import file://{folder}/hook.mjs {folder}/server.js", {"hook.mjs", "server.js"}),
        ("python -m pkg.tool", {"pkg/__init__.py", "pkg/tool.py"}),
        ("python -mpkg", {"pkg/__init__.py", "pkg/tool.py"}),
        ("uvx mcp-server-git", set()),
        ("npx -y tool", {"package.json", "node_modules/.bin/tool"}),
        ("npm run serve", {"package.json", "server.js"}),
        ("node .", {"package.json", "lib/main.js", "index.js", "Makefile"}),
        ("node lib", {"lib/main.js", "lib/deep/part.js"}),
        ("make serve", {"Makefile"}),
        ("/bin/sh {folder}/start.sh", {"start.sh"}),
    ],
)
def test_a_command_names_its_scripts_folders_and_project_files(
    tmp_path: Path, command: str, expected: set[str]
) -> None:
    package = '{"scripts": {"serve": "node server.js", "test": "jest pkg"}, "main": "lib/main.js"}'
    write(
        tmp_path,
        {
            "server.js": "", "start.sh": "", ".env": "", "hook.mjs": "", "Makefile": "",
            "pkg/__init__.py": "", "pkg/tool.py": "", "pkg/README.md": "A text.", "index.js": "",
            "package.json": package, "node_modules/.bin/tool": "", "lib/main.js": "",
            "lib/deep/part.js": "", "notes/a.md": "",
        },
    )  # fmt: skip
    words = command.format(folder=tmp_path).split()
    found = names(tmp_path, *words)
    # Node reads its package, whatever it runs.
    assert found - {"package.json"} == expected - {"package.json"}
    assert expected <= found


def test_words_inside_of_one_argument_and_of_the_environment_are_names_too(tmp_path: Path) -> None:
    write(tmp_path, {"a.js": "", "b.js": "", "c.js": "", "evil/node": "", "d.py": ""})
    found = names(
        tmp_path, "sh", "-c", "cd . && exec node './a.js'; node $PWD/b.js; python $(pwd)/d.py",
        NODE_OPTIONS="--require=./c.js", PATH="./evil:/usr/bin",
    )  # fmt: skip
    assert found == {"a.js", "b.js", "c.js", "d.py", "evil/node"}


def test_files_of_the_machine_are_not_the_folders(tmp_path: Path) -> None:
    write(tmp_path, {"clone/a.js": "", "elsewhere/b.js": "", "elsewhere/c.js": ""})
    clone = tmp_path / "clone"
    assert names(clone, "node", str(tmp_path / "elsewhere/b.js")) == set()
    # What is named from inside is the folder's word, wherever it leads.
    assert names(clone, "node", "../elsewhere/b.js") == {"../elsewhere/b.js"}
    (clone / "link.js").symlink_to(tmp_path / "elsewhere/c.js")
    assert names(clone, "node", str(clone / "link.js")) == {"link.js"}


def test_a_link_is_known_by_what_it_leads_to(tmp_path: Path) -> None:
    write(tmp_path, {"clone/x": "", "one.js": "1", "two.js": "2"})
    link = tmp_path / "clone" / "server.js"
    digests = []
    for target in ("one.js", "two.js", "one.js"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / target)
        (file,) = NamedFiles("s", link.parent, []).read("node", ["server.js"], ())
        digests.append(file.digest)
    assert digests[0] == digests[2] != digests[1]


def test_what_python_compiles_itself_is_no_change_and_what_it_would_not_check_is(
    tmp_path: Path,
) -> None:
    checked, unchecked = b"mmmm" + b"\0" * 12, b"mmmm\1" + b"\0" * 11
    write(tmp_path, {"pkg/__init__.py": "", "pkg/__pycache__/a.pyc": checked})
    assert names(tmp_path, "python", "-m", "pkg") == {"pkg/__init__.py"}
    write(tmp_path, {"pkg/__pycache__/a.pyc": unchecked})
    assert "pkg/__pycache__/a.pyc" in names(tmp_path, "python", "-m", "pkg")


def test_pipes_and_circles_hold_nobody_up(tmp_path: Path) -> None:
    write(tmp_path, {"lib/a.js": ""})
    os.mkfifo(tmp_path / "pipe.js")
    os.mkfifo(tmp_path / "package.json")
    os.mkfifo(tmp_path / "lib" / "pipe")
    (tmp_path / "lib" / "self").symlink_to(tmp_path / "lib")
    (tmp_path / "lib" / "all").symlink_to("/")
    assert names(tmp_path, "node", "pipe.js", "lib", ".") == {"pipe.js", "lib/a.js", "lib/pipe"}


def test_more_than_can_be_looked_at_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {f"lib/{number}.js": "x" * 100 for number in range(5)})
    monkeypatch.setattr(named_files, "MAX_FILES", 4)
    with pytest.raises(TooManyFiles, match="more than 4 files"):
        names(tmp_path, "node", "lib")
    monkeypatch.setattr(named_files, "MAX_FILES", 5)
    monkeypatch.setattr(named_files, "MAX_BYTES", 499)
    with pytest.raises(TooManyFiles, match="files of more than"):
        names(tmp_path, "node", "lib")
