"""What is public can be imported, is said once, and mentions nothing that is private."""

import inspect
import re
import subprocess
import sys
import typing
from typing import Any

import pytest
from tests.public.faces import (
    MADE_BY_US,
    MODULES,
    ROOT,
    SOURCE,
    names_of,
    public_members,
    public_names,
)

import lamina
from lamina.core.journal import Journal

PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
IMPORTS = re.compile(r"^\s*(?:from (lamina[\w.]*) import (.*)|import (lamina[\w.]*))", re.MULTILINE)
# It is about the inside, and says so.
ABOUT_THE_INSIDE = "theory.md"
# How something public is kept or made fast; what it gives is told by its port or its property.
INNER = {
    "Standing",
    "State",
    "JsonlJournal",
    "MemoryJournal",
    "SqliteJournal",
    "LazyList",
    "SegmentLink",
    "LinePlaces",
}


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_lamina_loads_nothing_else_of_it() -> None:
    code = "import sys, lamina; print(sorted(name for name in sys.modules if 'lamina' in name))"
    assert run(code) == "['lamina']"


def test_importing_lamina_takes_less_than_50_ms() -> None:
    # Of processor time: what else the machine does is not its doing.
    code = (
        "import time; began = time.process_time(); import lamina; "
        "print(time.process_time() - began)"
    )
    assert min(float(run(code)) for _ in range(5)) < 0.05


def test_all_public_names_load_nothing_heavy() -> None:
    heavy = (
        "numpy typer rich click prompt_toolkit yaml jsonschema Stemmer splintr openai anthropic "
        "google.genai mcp httpx2 httpcore2 onnxruntime tokenizers xllamacpp lxml PIL"
    )
    code = (
        f"import sys; from lamina import *; import {', '.join(MODULES)}; "
        f"print([name for name in {heavy.split()!r} if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_every_public_name_is_listed_by_dir_and_has_one_home() -> None:
    assert {*names_of("lamina"), "errors", "ops", "sync", "types", "__version__"} <= set(
        dir(lamina)
    )
    listed = [name for module in MODULES[:4] for name in names_of(module)]
    twice = {name for name in listed if listed.count(name) > 1}
    assert twice == {"BudgetError", "LaminaError", "PrefixMoved", "SpendLimit"}


def test_the_public_modules_are_there_with_lamina_alone() -> None:
    code = "import lamina; print(lamina.ops.Patch.__name__, lamina.types.Text.__name__, "
    assert run(code + "lamina.errors.HookError.code)") == "Patch Text hook"


@pytest.mark.parametrize("name", ["note_id", "opem_session", "_private", "__path"])
def test_what_is_not_public_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'lamina' has no attribute '{name}'"):
        getattr(lamina, name)


def _mentioned(hint: Any) -> set[type]:
    """The classes of this package that a type hint is made of."""
    classes = {part for inner in typing.get_args(hint) for part in _mentioned(inner)}
    if isinstance(hint, list | tuple):
        classes |= {part for inner in hint for part in _mentioned(inner)}
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, type) and origin.__module__.startswith("lamina."):
        classes.add(origin)
    return classes


def _hints(value: Any) -> dict[str, Any]:
    unseen = dict.fromkeys(("WorkspaceSearch", "Scores", "SimilarityGraph"), Any)
    return typing.get_type_hints(value, localns=unseen | {"Journal": Journal})


def _signature_hints(name: str, value: Any) -> typing.Iterator[tuple[str, Any]]:
    if inspect.isfunction(value):
        yield name, _hints(value)
    if not inspect.isclass(value):
        return
    if value not in MADE_BY_US and "__init__" in vars(value):
        yield f"{name}()", _hints(value.__init__)
    yield name, {} if value in MADE_BY_US else _hints(value)
    for member, attribute in public_members(value):
        function: Any = attribute.fget if isinstance(attribute, property) else attribute
        yield f"{name}.{member}", _hints(inspect.unwrap(function))


def test_whatever_a_public_signature_mentions_is_public() -> None:
    public = {value for _, value in public_names() if inspect.isclass(value)}
    strangers = {
        f"{place} mentions {owner.__name__}"
        for name, value in public_names()
        for place, hints in _signature_hints(name, value)
        for hint in hints.values()
        for owner in _mentioned(hint) - public
        if owner.__name__ not in INNER
    }
    # List them in `lamina.types`, or below INNER if nobody needs their name.
    assert not strangers, "\n".join(sorted(strangers))


def test_all_operations_are_in_ops() -> None:
    operations = set(typing.get_args(lamina.ops.PatchOp))
    assert len(operations) == 14
    assert operations <= {getattr(lamina.ops, name) for name in lamina.ops.__all__}


def test_every_event_and_every_entry_is_in_types() -> None:
    for union in (lamina.types.Event, lamina.types.Entry, lamina.types.Block, lamina.types.Piece):
        for member in typing.get_args(union):
            assert any(value is member for _, value in public_names()), member


def test_every_private_room_says_so() -> None:
    heads = [*SOURCE.glob("*/__init__.py"), *SOURCE.glob("*.py")]
    public = {
        SOURCE / place
        for module in MODULES
        for name in [module.removeprefix("lamina").lstrip(".")]
        for place in (f"{name}/__init__.py" if name else "__init__.py", f"{name}.py")
    }
    silent = [
        str(head.relative_to(SOURCE))
        for head in heads
        if head not in public and "\nPrivate: see `lamina`" not in head.read_text("utf-8")
    ]
    assert silent == []


def _pages() -> list[Any]:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return [pytest.param(page, id=page.name) for page in pages if page.name != ABOUT_THE_INSIDE]


@pytest.mark.parametrize("page", _pages())
def test_snippets_import_from_the_public_modules_only(page: Any) -> None:
    public = {name for name, _ in public_names()} | set(MODULES)
    for snippet in PYTHON.findall(page.read_text("utf-8")):
        for home, names, module in IMPORTS.findall(snippet):
            assert (module or home) in MODULES, f"{page.name}: {module or home}"
            for name in filter(None, re.split(r"[\s,()]+", names)):
                assert f"{home}.{name}" in public, f"{page.name}: {home}.{name}"


def test_the_readme_lists_the_public_modules() -> None:
    section = (ROOT / "README.md").read_text("utf-8").split("## What is public\n", 1)[1]
    listed = re.findall(r"^\| `(lamina[\w.]*)` \|", section.split("\n## ", 1)[0], re.MULTILINE)
    assert sorted(listed) == sorted(MODULES)
