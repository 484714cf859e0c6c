"""What a stranger stumbles over in the package, counted: names, sizes, cycles, a turn's modules.

    python bench/house.py [--src PLACE] [--beside PLACE]... [--list] [--json FILE]

A PLACE is a package's folder, a checkout that holds it as src/lamina, or the name of an installed
package, which is not imported. Each one after `--beside` is counted by the same rules, in a column
of its own. What the rows mean:

- A code line holds something other than a comment or a docstring.
- Top-level names are the modules and packages that stand directly in the package's folder.
- A module name used more than once is one that modules of several packages have. `__init__` and
  `__main__` do not count, nor do modules that are named after a vendor or stand in a package that
  is (VENDORS).
- One importer: a single other module imports it, be it lazily or for types. Lines are of code.
- A gerund is a word in -ing with at least three letters before it that NOUNS does not list. A
  module counts by the last word of its name, and by any word of it; packages count apart.
- Classes are public and at the top level of their module. A module's name shares a stem with a
  class if a word of the name and a word of the class begin with the same four letters, or if one
  begins with the whole of the other and that has three.
- Imports count if they run when the module is imported. Lazy ones stand inside functions, those
  for types under TYPE_CHECKING; each kind is added in turn. Importing a module is not importing
  the package around it, unless a name is taken from the package itself.
- `each` and `said` count wherever they are written (comments and docstrings, too), and as names in
  code. A bare participle is a single word in -ed or an irregular one (see IRREGULAR); it is
  assigned to by `=`, by `:=` and by unpacking.
- A turn is `await session.prepare(...)` for the second question of a session in memory, with the
  note of the first question attached again. Calls are of the package's functions, less
  comprehensions and lambdas, in the thread of the event loop; worker threads are counted apart. A
  change of module is a call to a function of another module than that of the call before it, in the
  order of the calls. Returning to the caller's module is a change only when that module calls
  another function of its own. Only Lamina is run.
"""

import argparse
import ast
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec, resolve_name
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyio

import lamina
from versions import find_command

HERE = Path(__file__).resolve()
LONG = 400
SMALL = 40
VENDORS = {
    *("anthropic", "gemini", "openai"),
    *("claude_code", "codex", "copilot_cli", "gemini_cli", "opencode", "pi"),
}
# Nouns that only look like gerunds.
NOUNS = ("setting", "string")
REGULAR = re.compile(r"(?!embed$|hundred$|shed$)[a-z]+[^e]ed")
IRREGULAR = re.compile(
    r"begun|born|bought|bound|broken|brought|built|caught|chosen|cut|done|drawn|driven|fallen|felt|"
    r"forgotten|found|frozen|given|gone|grown|heard|held|hidden|kept|known|laid|led|left|lost|made|"
    r"meant|met|paid|put|read|said|seen|sent|shown|sold|sought|spent|spoken|stuck|taken|taught|told|"
    r"torn|understood|undone|unknown|unread|unseen|withheld|won|worn|written"
)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")
LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

Documentable = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ImportNode = ast.Import | ast.ImportFrom
Graph = Mapping[str, set[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    name: str
    is_package: bool
    text: str
    tree: ast.Module

    @property
    def words(self) -> list[str]:
        return self.name.rpartition(".")[2].split("_")

    @property
    def classes(self) -> list[str]:
        nodes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        return [node.name for node in nodes if not node.name.startswith("_")]

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        return tokenize.generate_tokens(io.StringIO(self.text).readline)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One row: a number (None if unknown), what it is a part of, and the names behind it."""

    label: str
    value: float | None
    total: int | None = None
    names: tuple[str, ...] = ()


def count_names(label: str, names: Iterable[str], total: int | None = None) -> Figure:
    names = tuple(names)
    return Figure(label=label, value=len(names), total=total, names=names)


def read_modules(package: Path) -> Iterator[Module]:
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        yield Module(name=name, is_package=is_package, text=text, tree=ast.parse(text, str(path)))


def docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Documentable) and ast.get_docstring(node) is not None:
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def count_lines(module: Module) -> tuple[int, int]:
    """Lines of code, and lines of docstrings and comments."""
    docs = docstring_lines(module.tree)
    code: set[int] = set()
    comments: set[int] = set()
    for token in module.tokens():
        if token.type not in LAYOUT:
            lines = comments if token.type == tokenize.COMMENT else code
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(code - docs), len(docs | comments)


def measure_sizes(modules: list[Module]) -> Iterator[Figure]:
    counts = [count_lines(module) for module in modules]
    code, docs = (sum(column) for column in zip(*counts, strict=True))
    lengths = [(module.text.count("\n"), module.name) for module in modules]
    yield Figure(label="modules", value=len(modules))
    yield Figure(label="lines", value=sum(length for length, _ in lengths))
    yield Figure(label="lines of code", value=code)
    tops = {module.name.split(".")[1] for module in modules if "." in module.name}
    yield count_names("top-level names", sorted(tops))
    yield Figure(label="docs and comments per line of code", value=round(docs / code, 3))
    long = [f"{name} ({length})" for length, name in sorted(lengths) if length > LONG]
    yield count_names(f"files over {LONG} lines", long)


def is_gerund(word: str) -> bool:
    return word.endswith("ing") and len(word) >= 6 and word not in NOUNS


def share_stem(one: str, other: str) -> bool:
    length = min(4, len(one), len(other))
    return one == other or (length >= 3 and one[:length] == other[:length])


def names_class(module: Module) -> bool:
    class_words = [word.lower() for name in module.classes for word in WORD.findall(name)]
    return any(share_stem(word, other) for word in module.words for other in class_words)


def count_shared_names(modules: list[Module]) -> Figure:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        *_, package, name = module.name.split(".")
        if name != "__main__" and not {package, name} & VENDORS:
            homes[name].append(module.name)
    shared = sorted(f"{name}: {', '.join(where)}" for name, where in homes.items() if where[1:])
    return count_names("module names used more than once", shared, len(homes))


def measure_names(modules: list[Module]) -> Iterator[Figure]:
    plain = [module for module in modules if not module.is_package]
    packages = [module for module in modules if module.is_package]
    by_last = [module.name for module in plain if is_gerund(module.words[-1])]
    by_any = [module.name for module in plain if any(map(is_gerund, module.words))]
    rooms = [module.name for module in packages if any(map(is_gerund, module.words))]
    yield count_names("gerund modules, by the last word", by_last, len(plain))
    yield count_names("gerund modules, by any word", by_any, len(plain))
    yield count_names("gerund packages", rooms, len(packages))
    yield count_shared_names(plain)
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in module.classes:
            # In the door without `await` a class is the twin of its namesake, not another thing.
            if not (".sync." in module.name and name in homes):
                homes[name].append(module.name)
    most_first = sorted(homes.items(), key=lambda home: (-len(home[1]), home[0]))
    repeats = [f"{name}: {', '.join(where)}" for name, where in most_first if len(where) > 1]
    yield count_names("class names defined more than once", repeats, len(homes))
    with_class = {module.name: module for module in modules if module.classes}
    strange = [name for name, module in with_class.items() if not names_class(module)]
    rows = [f"{name}: {', '.join(with_class[name].classes)}" for name in strange]
    yield count_names("modules not named after a class in them", rows, len(with_class))


def assigned_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets):
                pass
            case ast.NamedExpr(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
                targets = [target]
            case _:
                continue
        parts = [part for target in targets for part in ast.walk(target)]
        yield from (p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store))


def measure_variables(modules: list[Module]) -> Iterator[Figure]:
    tokens = Counter(token.string for module in modules for token in module.tokens())
    words = Counter(word for module in modules for word in re.findall(r"\w+", module.text))
    for word in ("each", "said"):
        yield Figure(label=f"`{word}`, wherever written", value=words[word])
        yield Figure(label=f"`{word}`, as a name in code", value=tokens[word])
    names = Counter(name for module in modules for name in assigned_names(module.tree))
    for label, pattern in (("a participle in -ed", REGULAR), ("an irregular one", IRREGULAR)):
        counts = [(name, n) for name, n in names.most_common() if pattern.fullmatch(name)]
        yield Figure(
            label=f"assignments to {label}",
            value=sum(n for _, n in counts),
            names=tuple(f"{name} {n}" for name, n in counts),
        )


def import_nodes(node: ast.AST, *, lazy: bool, types: bool) -> Iterator[ImportNode]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ImportNode):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for branch in (*child.orelse, *(child.body if types else ())):
                block = ast.Module(body=[branch], type_ignores=[])
                yield from import_nodes(block, lazy=lazy, types=types)
        elif lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from import_nodes(child, lazy=lazy, types=types)


def import_targets(node: ImportNode, around: str, module_names: set[str]) -> set[str]:
    """The modules that an import names; `from a import b` names `a.b` if there is such a module."""
    if isinstance(node, ast.Import):
        return module_names & {alias.name for alias in node.names}
    place = resolve_name("." * node.level + (node.module or ""), around)
    inner = {f"{place}.{alias.name}" for alias in node.names}
    return module_names & (inner | ({place} if inner - module_names else set()))


def import_graph(modules: list[Module], *, lazy: bool, types: bool) -> Graph:
    module_names = {module.name for module in modules}
    graph: dict[str, set[str]] = {name: set() for name in module_names}
    for module in modules:
        around = module.name if module.is_package else module.name.rpartition(".")[0]
        for node in import_nodes(module.tree, lazy=lazy, types=types):
            graph[module.name] |= import_targets(node, around, module_names)
    return graph


def find_cycles(graph: Graph) -> list[list[str]]:
    """Groups of more than one module that reach one another."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        reach[start], ahead = set(), [start]
        while ahead:
            new = graph[ahead.pop()] - reach[start]
            reach[start] |= new
            ahead += new
    rings = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph}
    return sorted(sorted(ring) for ring in rings if len(ring) > 1)


def measure_imports(modules: list[Module]) -> Iterator[Figure]:
    for label, lazy, types in (
        ("import cycles", False, False),
        ("import cycles, lazy imports too", True, False),
        ("import cycles, imports for types too", True, True),
    ):
        graph = import_graph(modules, lazy=lazy, types=types)
        cycles = find_cycles(graph)
        yield count_names(label, [f"{len(ring)} modules: {', '.join(ring)}" for ring in cycles])
        yield Figure(label="  modules in the largest", value=max(map(len, cycles), default=0))
    # The last graph has imports of every kind.
    importers = Counter(target for name, targets in graph.items() for target in targets - {name})
    small = [
        module.name
        for module in modules
        if not module.is_package and count_lines(module)[0] < SMALL and importers[module.name] == 1
    ]
    label = f"modules under {SMALL} lines, one importer"
    yield count_names(label, small, sum(not module.is_package for module in modules))


def probe_turn() -> dict[str, object]:
    """Prepares a turn with the package that is on the path, and says what ran."""
    root = f"{Path(lamina.__file__).parent}{os.sep}"
    loop = threading.get_ident()
    is_counting = False
    frames: set[FrameType] = set()
    calls: list[tuple[str, CodeType, bool]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(root) and not code.co_name.startswith("<")
        # A coroutine that goes on is the same frame, hence the same call.
        if is_counting and event == "call" and is_ours and frame not in frames:
            frames.add(frame)
            name = code.co_filename.removeprefix(root)
            calls.append((name, code, threading.get_ident() == loop))

    async def play(folder: str) -> None:
        nonlocal is_counting
        session = await lamina.open_session(
            system="You are a careful assistant.",
            target="openai:gpt-4o",
            workspace=folder,
            store=lamina.MemoryStore(),
        )
        message = {"role": "assistant", "content": "So it is."}
        for question, is_counting in (("What is in it?", False), ("What follows?", True)):
            turn = await session.prepare(question, attach=["note.md"])
            is_counting = False
            await turn.commit({"choices": [{"message": message, "finish_reason": "stop"}]})
        await session.close()

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "note.md").write_text("# A note\n\nWith some words.\n")
        threading.setprofile(watch)
        sys.setprofile(watch)
        anyio.run(play, folder)
        sys.setprofile(None)
    names = [name for name, _, in_loop in calls if in_loop]
    return {
        "root": root,
        "calls": len(names),
        "functions": len({code for _, code, in_loop in calls if in_loop}),
        "changes": sum(name != before for before, name in pairwise(names)),
        "loop": sorted(set(names)),
        "all": sorted({name for name, *_ in calls}),
    }


def measure_turn(package: Path) -> Iterator[Figure]:
    report = run_probe(package) if package.name == "lamina" else None
    for label, key in (
        ("modules that `prepare` runs", "loop"),
        ("  functions in them", "functions"),
        ("  calls of these", "calls"),
        ("  changes of module", "changes"),
        ("modules with worker threads", "all"),
    ):
        value = report[key] if report else None
        if isinstance(value, list):
            yield count_names(label, value)
        else:
            yield Figure(label=label, value=value)


def run_probe(package: Path) -> dict[str, Any] | None:
    """What `probe_turn` reports of a Lamina, in a process of its own."""
    with tempfile.TemporaryDirectory() as data:
        places = {"PYTHONPATH": str(package.parent), "LAMINA_DATA": data, "LAMINA_HOOKS": "off"}
        command = [sys.executable, str(HERE), "--probe"]
        process = subprocess.run(command, env=os.environ | places, capture_output=True, text=True)
    if process.returncode:
        print(f"{package}: no turn could be prepared\n{process.stderr}", file=sys.stderr)
        return None
    report: dict[str, Any] = json.loads(process.stdout)
    if Path(report["root"]) != package:
        raise SystemExit(f"{report['root']} ran instead of {package}")
    return report


def measure(package: Path) -> list[Figure]:
    modules = list(read_modules(package))
    return [
        *measure_sizes(modules),
        *measure_names(modules),
        *measure_imports(modules),
        *measure_variables(modules),
        *measure_turn(package),
    ]


def find_package(place: str) -> Path:
    inner = Path(place, "src", "lamina")
    package = (inner if inner.is_dir() else Path(place)).resolve()
    if (package / "__init__.py").is_file():
        return package
    # Only the name of a package within another one would import anything.
    spec = find_spec(place.replace("-", "_")) if re.fullmatch(r"[\w-]+", place) else None
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            f"{place} is neither a package's folder, nor a checkout that holds src/lamina, nor an "
            f"installed package: {find_command(place)}"
        )
    return Path(spec.submodule_search_locations[0]).resolve()


def version_of(package: Path) -> str:
    # Others say it in their first file.
    files = (package / name for name in ("version.py", "__init__.py"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    if found := re.search(r'^__version__ = "(.+)"', text, re.MULTILINE):
        return f"{package.name} {found[1]}"
    owners = metadata.packages_distributions().get(package.name, [])
    return f"{package.name} {metadata.version(owners[0]) if owners else 'unknown'}"


def cell(figure: Figure) -> str:
    value = "unknown" if figure.value is None else f"{figure.value:,}"
    return value if figure.total is None else f"{value} of {figure.total:,}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--src", metavar="PLACE", help="what to count; this checkout")
    parser.add_argument(
        "--beside", metavar="PLACE", action="append", default=[], help="what to count beside it"
    )
    parser.add_argument("--list", action="store_true", help="name what was counted in the first")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.probe:
        print(json.dumps(probe_turn()))
        return 0
    places = [args.src or str(HERE.parents[1]), *args.beside]
    packages = [find_package(place) for place in places]
    versions = [version_of(package) for package in packages]
    columns = [measure(package) for package in packages]
    print(f"Python {platform.python_version()}; {'; beside it '.join(versions)}\n")
    if args.beside:
        heads = ["here", *(Path(place).resolve().name for place in args.beside)]
        print(f"{'':<43}{''.join(f'{head:>14}' for head in heads)}")
    for row in zip(*columns, strict=True):
        print(f"{row[0].label:<43}{''.join(f'{cell(figure):>14}' for figure in row)}")
    for figure in columns[0] if args.list else ():
        if figure.names:
            print(f"\n{figure.label}:", *figure.names, sep="\n  ")
    if args.json:
        rows = [
            {row.label: {"value": row.value, "of": row.total, "names": row.names} for row in column}
            for column in columns
        ]
        args.json.write_text(json.dumps({"versions": versions, "figures": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
