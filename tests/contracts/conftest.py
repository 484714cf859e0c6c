"""The houses, open once for a module and as new for every test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contracts.houses import House, Town, settled


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def _contract_cache(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for all modules: a model is loaded once for each."""
    folder = tmp_path_factory.mktemp("contracts")
    models = folder / "models"
    models.mkdir()
    (models / embedded_model.name).symlink_to(embedded_model)
    (folder / "models.toml").write_text("[providers.local]\nmax_output = 44\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def _embedded_answers_are_short(_contract_cache: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(_contract_cache))
        patch.setenv("LAMINA_MODELS", str(_contract_cache / "models.toml"))
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
