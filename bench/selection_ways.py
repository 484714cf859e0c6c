"""Ways to find tools for a question, each as rankings of places in the list of tools."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from msgspec import Struct

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.chunks import chunk_tool, name_in_words
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import rank_documents
from lamina.core.values.item import ItemId, tool_id
from lamina.core.values.selection import Document, SearchSettings

Ranking = Sequence[int]


class Tool(Struct, frozen=True):
    """A tool as the data has it."""

    name: str
    description: str
    server: str = ""
    server_description: str = ""
    params: tuple[str, ...] = ()


class Asked(Struct, frozen=True):
    query: str
    gold: tuple[str, ...]
    gold_servers: dict[str, tuple[str, ...]] = {}


class ToolSet(Struct, frozen=True):
    tools: tuple[Tool, ...]
    queries: tuple[Asked, ...]


class Found(Struct, frozen=True, kw_only=True):
    """What our way gives for one question: all tools in order; the ones that `select` takes with
    its defaults, and with room for ten; and the cosine of every tool."""

    ranking: Ranking
    taken: Ranking
    taken_of_ten: Ranking
    scores: dict[int, float]


def rank_by_words(data: ToolSet, *, in_words: bool = False) -> list[Ranking]:
    """bm25s with stemming and stop words over name and description; `in_words` spells the names
    as words, which helps it."""
    import bm25s
    import Stemmer

    def tokens(texts: Sequence[str]) -> Any:
        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False)

    def text(tool: Tool) -> str:
        return f"{name_in_words(tool.name) if in_words else tool.name} {tool.description}"

    retriever = bm25s.BM25()
    retriever.index(tokens([text(tool) for tool in data.tools]), show_progress=False)
    questions = tokens([query.query for query in data.queries])
    hits, _ = retriever.retrieve(questions, k=min(100, len(data.tools)), show_progress=False)
    return [[int(place) for place in row] for row in hits]


async def rank_by_vectors(data: ToolSet) -> list[Ranking]:
    """MiniLM: the whole question against name and description."""
    embedder = MiniLM()
    tools = await embedder.embed([f"{tool.name}: {tool.description}" for tool in data.tools])
    vectors = await embedder.embed([query.query for query in data.queries])
    order = numpy.argsort(-(vectors @ tools.T), axis=1, kind="stable")
    return [[int(place) for place in row[:100]] for row in order]


def documents_of(data: ToolSet) -> list[Document]:
    """The tools as they are searched; one that stands twice on a server has two ids."""
    documents = []
    counts: dict[ItemId, int] = {}
    for tool in data.tools:
        item = tool_id(tool.server, tool.name)
        counts[item] = counts.get(item, 0) + 1
        twin = item if counts[item] == 1 else ItemId(f"{item}#{counts[item]}")
        chunks = chunk_tool(
            tool.name,
            tool.description,
            server=tool.server,
            server_description=tool.server_description,
            parameters=tool.params,
        )
        documents.append(Document(twin, chunks))
    return documents


async def find_by_lamina(data: ToolSet) -> list[Found]:
    """Index, questions, ranking and choice as `lamina select` does it."""
    documents = documents_of(data)
    places = {document.id: place for place, document in enumerate(documents)}
    ten = SearchSettings(top_n=10)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteIndex(Path(folder) / "index.db", MiniLM())
        corpus = await index.load(documents)
        for question in data.queries:
            query = split_question(question.query)
            scores = await corpus.score([part.text for part in query.parts])
            ranking = rank_documents(documents, scores, query)
            results.append(
                Found(
                    ranking=[places[one.item] for one in ranking],
                    taken=[
                        places[one.item]
                        for one in choose_items(documents, scores, query, SearchSettings())
                    ],
                    taken_of_ten=[
                        places[one.item] for one in choose_items(documents, scores, query, ten)
                    ],
                    scores={places[one.item]: one.score or 0.0 for one in ranking},
                )
            )
        index.close()
    return results
