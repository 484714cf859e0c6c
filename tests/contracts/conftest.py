"""The houses, open once for a module and as new for every test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contracts.houses import House, Town, settled


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def _embedded_answers_are_short(
    embedded_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("contracts")
    models = folder / "models"
    models.mkdir()
    (models / embedded_model.name).symlink_to(embedded_model)
    book = folder / "models.toml"
    book.write_text("[providers.local]\nmax_output = 32\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(folder))
        patch.setenv("LAMINA_MODELS", str(book))
        yield


@pytest.fixture(scope="module")
async def _town(anyio_backend: str, _embedded_answers_are_short: None) -> AsyncIterator[Town]:
    async with settled() as town:
        yield town


@pytest.fixture
def town(_town: Town) -> Town:
    _town.begin()
    return _town


@pytest.fixture
def house(town: Town, name: str) -> House:
    """The house that the test is for."""
    return town[name]
