"""Rule files in the wild: whether all are read, what is odd about them, and whether ten questions
bring the ones they should.

python bench/rules.py --data DIR [--json FILE]     (DIR holds rules/cursor/*.mdc)
"""

import argparse
import json
import platform
import re
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from lamina import __version__
from lamina.adapters.agents import read_agent
from lamina.core.ports import Embedder
from lamina.core.values.agent import Agent
from lamina.core.values.item import key_of
from lamina.core.values.selection import Document, SearchSettings
from rules_questions import QUESTIONS

# A problem's words with what stands in quotes left out are its kind.
KINDS = (
    ("globs that are no YAML, read as meant", r"globs: .* was read as it is meant"),
    ("globs that fit every file", r"globs: .* fits every file"),
    ("an entry that is no YAML, read as meant", r"\w+: .* was read as it is meant"),
    ("a code block without an end", r"a code block begins here"),
    ("no text", r"has no text"),
    ("the text of another rule", r"has the same text"),
    ("a name that is not plain", r"the name "),
    ("no head", r"has no head"),
    ("a head without an end", r"the head that begins here has no end"),
    ("an entry nobody reads", r"means nothing here"),
    ("line ends of Windows", r"has line ends of Windows"),
    ("a byte order mark", r"begins with a byte order mark"),
    ("not UTF-8", r"is not UTF-8"),
)


def kind_of(problem: str) -> str:
    return next((kind for kind, pattern in KINDS if re.match(pattern, problem)), problem)


def account(folder: Path, agent: Agent) -> dict[str, Any]:
    """Compares what was read with the bytes on disk, by another way of finding where heads end.

    Raises:
        AssertionError: a file is missing, or a byte of one that is no space.
    """
    files = sorted(folder.glob("**/*.mdc"))
    by_place = {guide.place.rpartition(":")[0]: guide for guide in agent.guides}
    size = read_bytes = 0
    for path in files:
        data = path.read_bytes()
        guide = by_place.get(str(path))
        assert guide is not None, f"{path} was lost"
        parts = re.split(rb"^---[ \t]*\r?\n", data, maxsplit=2, flags=re.MULTILINE)
        body = parts[2] if len(parts) == 3 and not parts[0].strip() else data
        words = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").strip()
        assert guide.text.strip().encode() == words, f"a part of {path} was lost"
        size += len(words)
        read_bytes += len(guide.text.strip().encode())
    assert len(agent.guides) == len(files), "there are more rules than files"
    return {
        "files": len(files),
        "loaded": len(agent.guides),
        "bytes": size,
        "bytes_read": read_bytes,
    }


async def ask(agent: Agent, embedder: Embedder | None, *, every: bool) -> dict[str, Any]:
    """Which of the files that each question should bring are among those selected, with the
    settings that everybody has, and where they stand in the ranking: of `every` rule, or of those
    that say that they are searched for."""
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex
    from lamina.core.selection.chosen_items import choose_items
    from lamina.core.selection.chunks import chunk_item
    from lamina.core.selection.question import split_question
    from lamina.core.selection.scores import rank_documents

    documents = tuple(
        Document(guide.id, chunk_item(guide.name, guide.description, guide.text))
        for guide in agent.guides
        if every or guide.include == "agent"
    )
    settings = SearchSettings()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteIndex(Path(folder) / "index.sqlite", embedder)
        corpus = await index.load(documents)
        for question in QUESTIONS:
            query = split_question(question.text)
            scores = await corpus.score([part.text for part in query.parts])
            choice = [
                key_of(item.item) for item in choose_items(documents, scores, query, settings)
            ]
            ranking = [
                key_of(document.item)
                for document in rank_documents(documents, scores, query, settings)
            ]
            places = {
                name: ranking.index(name) + 1 if name in ranking else None
                for name in question.files
            }
            rows.append({"question": question.text, "selected": choice, "places": places})
        index.close()
    file_count = sum(len(question.files) for question in QUESTIONS)
    hits = sum(name in row["selected"] for row in rows for name in row["places"])
    whole = sum(all(name in row["selected"] for name in row["places"]) for row in rows)
    return {
        "embedder": embedder.name if embedder and not corpus.lexical else "none",
        "rules": "every rule" if every else "rules with include: agent",
        "documents": len(documents),
        "chunks": sum(len(document.chunks) for document in documents),
        "files_wanted": file_count,
        "files_brought": hits,
        "questions": len(rows),
        "questions_with_all": whole,
        "rows": rows,
    }


def show(figures: dict[str, Any]) -> None:
    print(
        f"lamina {figures['lamina']}, Python {figures['python']}: {figures['loaded']} of "
        f"{figures['files']} files are rules, {figures['bytes_read']:,} of {figures['bytes']:,} "
        f"bytes of their texts are there, read in {figures['seconds']} s"
    )
    print("\nhow they join:")
    for name, count in figures["include"].items():
        print(f"{count:>6}  {name}")
    print(f"{figures['with_globs']:>6}  with patterns")
    print("\nwhat is odd about them:")
    for name, count in figures["oddities"].items():
        print(f"{count:>6}  {name}")
    for run in figures["asked"]:
        print(
            f"\nquestions to {run['rules']} ({run['documents']}, {run['chunks']:,} chunks), "
            f"embedder {run['embedder']}: "
            f"{run['files_brought']} of {run['files_wanted']} files, all of them for "
            f"{run['questions_with_all']} of {run['questions']} questions"
        )
        for row in run["rows"]:
            print(f"  {row['question']}")
            for name, place in row["places"].items():
                mark = "yes" if name in row["selected"] else "no "
                print(f"    {mark} at {place or '-'!s:>3} of {len(row['selected'])}  {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with rules/cursor")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    folder = args.data / "rules" / "cursor"
    folder = (folder if folder.is_dir() else args.data).absolute()
    start = time.perf_counter()
    agent = read_agent(folder)
    seconds = time.perf_counter() - start
    figures: dict[str, Any] = {
        "lamina": __version__,
        "python": platform.python_version(),
        **account(folder, agent),
        "seconds": round(seconds, 2),
        "include": dict(Counter(guide.include for guide in agent.guides).most_common()),
        "with_globs": sum(bool(guide.globs) for guide in agent.guides),
        "oddities": dict(
            Counter(kind_of(problem.problem) for problem in agent.problems).most_common()
        ),
        "levels": dict(Counter(problem.level for problem in agent.problems)),
    }
    from lamina.adapters.embed.minilm import MiniLM

    figures["asked"] = [
        anyio.run(partial(ask, agent, embedder, every=every))
        for every in (True, False)
        for embedder in (MiniLM(fetch=True), None)
    ]
    show(figures)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
