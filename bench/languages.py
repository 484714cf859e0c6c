"""How well the notes of a folder are found, whatever language they are in.

    python bench/languages.py FOLDER... [--json FILE]

Each FOLDER holds `notes/*.md` and `questions.json`, a list of `{question, note}`: the note, by its
name, that answers the question. `first`: the share of questions whose note comes first; `five`: is
among the first five; `mrr`: mean reciprocal rank among the first ten.
Ways: words alone (BM25), the encoder alone, both with the shares that are right for English, and
Lamina, which asks the encoder how well it knows the question's language. `fluency` is that: letters
per token, for the median of the questions.
"""

import argparse
import json
import platform
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import numpy

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.core.selection.chosen_passages import choose_passages
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import Scores
from lamina.core.values.item import note_id
from lamina.core.values.selection import Document
from versions import version

TOP = 10
WAYS = ("words", "encoder", "fixed shares", "Lamina")
FIGURES = ("first", "five", "mrr")


async def load_documents(folder: Path) -> tuple[list[str], list[Document]]:
    """The notes by name, and as they are searched."""
    workspace = FolderWorkspace(folder / "notes", watch=False)
    try:
        catalogue = await workspace.catalogue()
        names, documents = [], []
        for note in catalogue.notes:
            texts = await workspace.texts([(note.path, passage) for passage in note.passages])
            chunks = tuple(text for text in texts if text)
            names.append(note.path)
            documents.append(Document(note_id(note.path), chunks))
        return names, documents
    finally:
        await workspace.aclose()


class PlainEmbedder:
    """The same encoder, which cannot tell what it does not know."""

    def __init__(self, encoder: MiniLM) -> None:
        self.name = encoder.name
        self.embed = encoder.embed


def ways_of(scores: Scores, fixed: Scores) -> Mapping[str, Scores]:
    """The same scores as each way knows them."""
    nothing = numpy.zeros_like(scores.lexical)
    words = Scores(lexical=scores.lexical, layout=scores.layout)
    encoder = Scores(lexical=nothing, cosine=fixed.cosine, layout=scores.layout)
    return {"words": words, "encoder": encoder, "fixed shares": fixed, "Lamina": scores}


def figures_of(ranks: Sequence[int | None]) -> dict[str, float]:
    places = [rank or 10**9 for rank in ranks]
    figures = (
        sum(place == 1 for place in places),
        sum(place <= 5 for place in places),
        sum(1 / place for place in places if place <= TOP),
    )
    return {
        name: round(100 * float(figure) / max(1, len(places)), 1)
        for name, figure in zip(FIGURES, figures, strict=True)
    }


async def measure(folder: Path) -> dict[str, object]:
    questions = json.loads((folder / "questions.json").read_text("utf-8"))
    names, documents = await load_documents(folder)
    ranks: dict[str, list[int | None]] = {way: [] for way in WAYS}
    fluency: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        encoder, path = MiniLM(fetch=True), Path(place) / "index.sqlite"
        index, plain = SqliteIndex(path, encoder), SqliteIndex(path, PlainEmbedder(encoder))
        corpus, fixed = await index.load(documents), await plain.load(documents)
        for row in questions:
            query = split_question(row["question"])
            parts = [part.text for part in query.parts]
            fluency += await encoder.fluency([row["question"]])
            both = ways_of(await corpus.score(parts), await fixed.score(parts))
            for way, scores in both.items():
                hits = choose_passages(
                    documents, scores, query, top=TOP, per_document=1, floor=-2.0
                )
                order = [names[hit.document] for hit in hits]
                note = row["note"]
                ranks[way].append(order.index(note) + 1 if note in order else None)
        index.close()
        plain.close()
    return {
        "folder": folder.name,
        "notes": len(documents),
        "questions": len(questions),
        "fluency": round(float(numpy.median(fluency)), 2),
        **{way: figures_of(ranks[way]) for way in WAYS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, lamina {version('lamina')}")
    print("| folder | notes | questions | fluency | figure | " + " | ".join(WAYS) + " |")
    print("|---|--:|--:|--:|---|" + "--:|" * len(WAYS))
    rows = []
    for folder in arguments.folders:
        row = anyio.run(partial(measure, folder))
        rows.append(row)
        for figure in FIGURES:
            cells = " | ".join(f"{row[way][figure]:.1f}" for way in WAYS)  # type: ignore[index]
            facts = [row[name] for name in ("folder", "notes", "questions", "fluency")]
            print(f"| {' | '.join(map(str, facts))} | {figure} | {cells} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
