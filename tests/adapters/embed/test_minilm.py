"""Vectors of the embedding model: what they say, and what they do not depend on."""

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.adapters.embed.minilm import MINILM, MiniLM, find_network, load_network, start_runtime
from lamina.adapters.embed.onnx_graph import (
    DIMENSIONS,
    INPUT,
    MAX_TOKENS,
    build_onnx_graph,
    read_tensors,
)
from lamina.core.ports import Embedder

LONG = "The lighthouse keeper wrote down every ship that passed and the hour of its passing. " * 40
TEXTS = (
    "",
    "hello",
    "How do I list the files of a folder?",
    "Every public function has a type annotation and a docstring of one sentence.",
    "def read(path: Path) -> bytes:\n    return path.read_bytes()",
    "| name | value |\n|---|---|\n| a | 1 |",
    "Die Katze schläft auf dem Sofa, während es draußen regnet.",
    "数据库连接池的大小应该根据并发请求数来设置",
    '{"type": "object", "properties": {"city": {"type": "string"}}}',
    LONG[:500],
    LONG[:1500],
    LONG,
)
# A sentence, another way to say it, and something else in words of the first.
TRIPLES = (
    ("How can I reset my password?", "I forgot my login and need a new one",
     "How can I reset the router?"),
    ("The cat sat on the mat", "A feline was resting on a rug", "The mat costs ten dollars"),
    ("Get the current weather in a city", "What is the temperature in Paris right now?",
     "Get the current balance of an account"),
    ("Write tests before you commit", "Code must be tested prior to being checked in",
     "Write a letter before you leave"),
    ("list files in a directory", "show me what is inside this folder", "list users of a team"),
    ("The company's revenue grew by 20% last year", "Sales rose by a fifth in twelve months",
     "The company's office moved last year"),
)  # fmt: skip


@pytest.fixture
def embedder(embedding_model: Path, monkeypatch: pytest.MonkeyPatch) -> MiniLM:
    monkeypatch.setenv("LAMINA_CACHE", str(embedding_model.parent.parent))
    return MiniLM()


def embed(embedder: Embedder, texts: Sequence[str], **how: Any) -> Any:
    return anyio.run(partial(embedder.embed, texts, **how))


def test_a_paraphrase_is_closer_than_what_only_shares_words(embedder: MiniLM) -> None:
    for triple in TRIPLES:
        first, same, other = embed(embedder, triple)
        assert first @ same > first @ other, triple


def test_vectors_are_those_of_the_model_in_32_bits(embedder: MiniLM, embedding_model: Path) -> None:
    weights = read_tensors(embedding_model / MINILM.weights.file_name)
    reference = start_runtime(build_onnx_graph(weights).SerializeToString())
    found = embed(embedder, TEXTS)
    for text, row in zip(TEXTS, found, strict=True):
        ids = numpy.array(load_network().tokens(text), dtype=numpy.int64)
        likeness = row @ reference.run(None, {INPUT: ids})[0]
        # Nothing but the marks of beginning and end: no other two tokens tell less.
        assert likeness >= (0.98 if text else 0.97), text[:60]


def test_vectors_are_what_they_were(embedder: MiniLM) -> None:
    """Vectors are kept: if they change, so must the embedder's name. The figures are those of the
    reference implementation; ours are off by what 8 bits cost."""
    assert embedder.name == "all-MiniLM-L6-v2/int8-1"
    first, second, other = embed(embedder, TRIPLES[1])
    assert [first @ second, first @ other] == pytest.approx([0.574, 0.355], abs=0.03)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(st.text(max_size=400), min_size=1, max_size=4))
def test_a_text_has_one_vector_alone_and_among_others(embedder: MiniLM, texts: list[str]) -> None:
    together = embed(embedder, [*texts, *TEXTS[:4], *reversed(texts)])
    assert together.dtype == numpy.float32
    assert numpy.allclose(numpy.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert numpy.array_equal(together[: len(texts)], together[: -len(texts) - 1 : -1])
    for text, row in zip(texts, together, strict=False):
        assert numpy.array_equal(row, embed(embedder, [text])[0])


def test_rows_are_in_the_order_of_the_texts(embedder: MiniLM) -> None:
    texts = [f"{word} number {n}" for n in range(20) for word in ("apple", "harbour", LONG)]
    together = embed(embedder, texts)
    alone = numpy.stack([embed(embedder, [text])[0] for text in texts])
    assert numpy.array_equal(together, alone)


def test_no_texts_have_no_vectors_and_need_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path))
    found = embed(MiniLM(), [])
    assert (found.shape, found.dtype) == ((0, DIMENSIONS), numpy.float32)


def test_half_characters_and_huge_texts_have_vectors_too(embedder: MiniLM) -> None:
    odd = ["\ud800", "half \udfff character", "\ud83d\ude00", "\0", "x" * 1_000_000, LONG * 300]
    found = embed(embedder, odd)
    assert numpy.allclose(numpy.linalg.norm(found, axis=1), 1, atol=1e-5)
    # Two halves that were torn apart are one character.
    assert numpy.array_equal(found[2], embed(embedder, ["\U0001f600"])[0])
    # Of a long text the beginning is read.
    assert numpy.array_equal(found[5], embed(embedder, [LONG])[0])
    assert len(load_network().tokens(LONG)) == MAX_TOKENS


def test_words_of_the_tokenizer_in_a_text_are_plain_text(embedder: MiniLM) -> None:
    begin, *inner, end = load_network().tokens("[SEP] [MASK] [PAD]")
    assert not {begin, end, 0, 103} & {*inner}


def test_progress_goes_from_nothing_to_everything_in_the_thread_that_waits(
    embedder: MiniLM,
) -> None:
    seen: list[tuple[int, int]] = []
    threads = set()

    def report(done: int, total: int) -> None:
        seen.append((done, total))
        threads.add(threading.get_ident())

    embed(embedder, [LONG] * 60, progress=report)
    assert (seen[0], seen[-1]) == ((0, 60), (60, 60))
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert threads == {threading.get_ident()}


def test_a_cancelled_embedding_ends_between_texts(embedder: MiniLM) -> None:
    seen = []

    async def cancel_when_it_runs() -> None:
        with anyio.CancelScope() as scope:

            def report(done: int, total: int) -> None:
                seen.append(done)
                if done:
                    scope.cancel()

            await embedder.embed([LONG] * 100_000, report)
        assert scope.cancelled_caught

    anyio.run(cancel_when_it_runs)
    assert seen[-1] < 1000
    assert not helpers()


def test_a_task_that_is_cancelled_past_anyio_ends_too(embedder: MiniLM) -> None:
    import asyncio

    async def cancel_the_task() -> None:
        running = asyncio.Event()

        def report(done: int, total: int) -> None:
            if done:
                running.set()

        async def ask() -> None:
            await embedder.embed([LONG] * 100_000, report)

        task = asyncio.create_task(ask())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_the_task())
    for each in helpers():
        each.join(60)
    assert not helpers()


def test_a_progress_that_fails_ends_the_work(embedder: MiniLM) -> None:
    def report(done: int, total: int) -> None:
        if done:
            raise RuntimeError("the screen is gone")

    with pytest.raises(RuntimeError, match="the screen is gone"):
        embed(embedder, [LONG] * 100_000, progress=report)
    assert not helpers()


def helpers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("embed")]


def test_tasks_that_ask_at_once_share_one_network(
    embedding_cache: Path,
) -> None:
    found: list[Any] = []

    async def ask(text: str) -> None:
        found.append(await MiniLM().embed([text]))

    async def ask_at_once() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(ask, "hello")

    assert find_network() is None
    anyio.run(ask_at_once)
    assert load_network() is find_network()
    assert all(numpy.array_equal(each, found[0]) for each in found)
