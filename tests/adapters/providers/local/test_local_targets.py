"""Targets on this machine: what the book says of them with their file, and without."""

from pathlib import Path

import anyio
import pytest
from tests.adapters.providers.local.test_gguf import PAIRS, gguf_bytes
from tests.fakes.replies import openai_reply

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.core.audit.verification import verify
from lamina.core.values.entry import RequestEntry
from lamina.errors import UnknownModel, UnknownTarget

NAME = "local:smollm2-135m"
TEXT = "The pier opens in May 2027, they said."


def test_a_model_that_is_here_is_counted_exactly(model_cache: Path) -> None:
    book = load_book()
    target = book.find(NAME)
    counter = book.counter(target)
    assert (target.name, target.window, target.exact_tokens) == (NAME, 8192, True)
    assert (counter.exact, counter.name) == (True, "gguf:959746d9b2fc")
    assert counter.count(TEXT) == 14


def test_a_model_that_is_not_here_is_estimated(empty_cache: Path) -> None:
    book = load_book()
    target = book.find(NAME)
    counter = book.counter(target)
    assert (target.window, target.exact_tokens) == (8192, False)
    assert (counter.exact, counter.name) == (False, "o200k_base*1.1")


def test_a_target_knows_its_model_once_it_came_and_no_longer_when_it_went(
    empty_cache: Path, embedded_model: Path
) -> None:
    book = load_book()
    assert not book.find(NAME).exact_tokens
    here = empty_cache / "models" / embedded_model.name
    here.parent.mkdir(parents=True)
    here.symlink_to(embedded_model)
    target = book.find(NAME)
    assert target.exact_tokens
    assert book.counter(target).exact
    here.unlink()
    assert not book.find(NAME).exact_tokens
    # Also for who holds the target from before.
    assert book.counter(target).name == "o200k_base*1.1"


def test_a_file_by_its_path_has_the_window_it_was_made_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf_bytes())
    target = load_book().find(f"local:{path}")
    assert (target.name, target.window) == (f"local:{path}", 2048)
    assert target.max_output <= 1024
    assert not target.exact_tokens
    path.write_bytes(gguf_bytes(tuple((k, t, 10**6 if t == 4 else v) for k, t, v in PAIRS)) + b" ")
    # No more than the book allows: memory is not free.
    assert load_book().find(f"local:{path}").window == 8192


@pytest.mark.parametrize("model", ["/gone/mine.gguf", "~/gone.gguf", "mine.gguf", "./m", NAME[6:]])
def test_a_model_file_that_is_gone_still_has_a_target(empty_cache: Path, model: str) -> None:
    target = load_book().find(f"local:{model}")
    assert (target.model, target.window) == (model, 8192)


def test_a_name_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UnknownModel, match=r"'local:smollm3' .*\(smollm2-135m, qwen.*GGUF"
    ) as caught:
        load_book().find("local:smollm3")
    assert isinstance(caught.value, UnknownTarget)
    assert caught.value.code == "unknown_model"
    assert load_book().find("local:*").window == 8192


def test_a_name_of_the_users_own_book_is_known(tmp_path: Path) -> None:
    own = tmp_path / "models.toml"
    own.write_text('[[providers.local.models]]\nmatch = "house"\nwindow = 4096\n', "utf-8")
    book = load_book(str(own))
    assert book.find("local:house").window == 4096
    with pytest.raises(UnknownModel):
        book.find("local:garden")


def test_a_session_is_verified_though_its_model_is_gone(
    tmp_path: Path, embedded_model: Path
) -> None:
    mine = tmp_path / "mine.gguf"
    mine.symlink_to(embedded_model)
    store = lamina.MemoryStore()

    async def talk() -> str:
        session = await lamina.open_session(
            target=f"local:{mine}", system="Be brief.", workspace=tmp_path, store=store
        )
        for question in (TEXT, "And the boat?"):
            turn = await session.prepare(question)
            await turn.commit(openai_reply("Yes."))
        await session.close()
        return session.id

    session = anyio.run(talk)
    journal = anyio.run(store.read, session)
    counted = [e.tokens for e in journal.entries.values() if isinstance(e, RequestEntry)]
    assert counted[0] < counted[1]
    assert verify(journal, load_book()).sound
    mine.unlink()
    assert verify(journal, load_book()).sound

    async def go_on() -> None:
        again = await lamina.open_session(session, workspace=tmp_path, store=store)
        turn = await again.prepare("And now?")
        await turn.commit(openai_reply("Still."))
        await again.close()

    anyio.run(go_on)
    assert verify(anyio.run(store.read, session), load_book()).sound


def test_a_file_whose_model_thinks_first_is_not_held_to_citing(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf_bytes())
    assert load_book().find(f"local:{path}").takes_citations
    thinker = tmp_path / "thinker.gguf"
    template = ("tokenizer.chat_template", 8, "<think>{{ x }}</think>")
    thinker.write_bytes(gguf_bytes((*PAIRS[:-1], template)))
    assert not load_book().find(f"local:{thinker}").takes_citations
