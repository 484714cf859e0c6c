"""Property tests draw the same on every run and every machine, so that a red run is about the
change and not about luck. With LAMINA_FUZZ=N they draw anew, N times as many (`make fuzz`)."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from lamina.adapters.embed.minilm import pull_embedding
from lamina.adapters.files.cache_folder import cache_folder
from lamina.adapters.providers.local.model_catalogue import DEFAULT_MODEL
from lamina.adapters.providers.local.model_download import pull_local_model
from lamina.apps.wiring.stores import PREFIX_FILE

FUZZ = int(os.environ.get("LAMINA_FUZZ") or 0)

# Every setting by name: Hypothesis has other defaults where it believes to be in CI, and how fast
# a machine is, or what failed on it before, makes no difference.
settings.register_profile(
    "tests",
    settings.get_profile("default"),
    derandomize=not FUZZ,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
if not FUZZ:
    # Hypothesis also draws the literals of all modules that happen to be loaded, which depends on
    # what ran before in the same process.
    providers._get_local_constants = lambda: providers._local_constants

# The files that take longest, which often have few tests: whoever gets one of them last works on
# while every other core idles.
LONG_FILES = (
    "journeys/test_ask_and_rpc.py",
    "journeys/test_embedded_model.py",
    "apps/cli/test_demo.py",
    "packaging/test_base_install.py",
    "apps/cli/test_recorder.py",
    "journeys/test_ten_sessions.py",
    "adapters/files/test_agent_attacks.py",
    "adapters/embed/test_minilm_files.py",
    "journeys/test_chat_in_a_terminal.py",
    "core/audit/test_covered_requests.py",
    "journeys/test_fuzz.py",
    "core/journal/test_replay_laws.py",
    "apps/web/test_restart.py",
    "core/layers/test_bound_sessions.py",
    "sync/test_programs.py",
    "sync/test_types.py",
)

# The user's own: models stay there from run to run.
KEPT = cache_folder()


def pytest_configure(config: pytest.Config) -> None:
    """Files are spread over the cores in the order below, not the most tests first."""
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first. With LAMINA_FUZZ=N, every property draws N times as
    many examples."""
    rank = {Path(__file__).parent / name: number for number, name in enumerate(LONG_FILES)}
    assert all(path.is_file() for path in rank), "LONG_FILES names a file that is gone"
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    tests = {getattr(item, "obj", None): getattr(item, "cls", None) for item in items}
    for test, machine in tests.items() if FUZZ > 1 else ():
        if test is None or not is_hypothesis_test(test):
            continue
        usual = machine.settings if machine else test._hypothesis_internal_use_settings
        often = settings(usual, max_examples=usual.max_examples * FUZZ)
        if machine:
            machine.settings = often
        else:
            test._hypothesis_internal_use_settings = often


@pytest.fixture(autouse=True, scope="session")
def _cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Whether a model is on this machine makes no difference to a test that did not ask for it."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_a_model() -> Iterator[None]:
    """Several wait for one another at work, which takes the cores from tests that run beside: a
    short answer costs four times as much then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_THREADS", "1")
        yield


@pytest.fixture(autouse=True)
def _nothing_sent_before() -> None:
    """What one test sent to its servers is in no cache of another's."""
    for path in cache_folder().glob(f"{PREFIX_FILE}*"):
        path.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def embedded_model(_cache_folder: Path) -> Path:
    """The real model: the one that is kept on this machine, or else pulled and kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(KEPT))
        return anyio.run(partial(pull_local_model, DEFAULT_MODEL, verify=True))


@pytest.fixture(scope="session")
def embedding_model(_cache_folder: Path) -> Path:
    """The folder of the real embedding model: the one that is kept on this machine, or else pulled
    and kept, with its graph."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(KEPT))
        return anyio.run(partial(pull_embedding, verify=True))


@pytest.fixture
def embedding_cache(embedding_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with the embedding model's files in it."""
    folder = tmp_path / "cache" / "models" / embedding_model.name
    folder.mkdir(parents=True)
    for path in embedding_model.iterdir():
        (folder / path.name).symlink_to(path)
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model_cache(embedded_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with the model in it."""
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    (models / embedded_model.name).symlink_to(embedded_model)
    monkeypatch.setenv("LAMINA_CACHE", str(models.parent))
    return models.parent


@pytest.fixture(autouse=True, scope="module")
def _models_end_with_their_tests() -> Iterator[None]:
    """A program keeps a model for whoever comes next. Here each test has a cache of its own, so
    that nobody would come, and every model takes some hundred megabytes."""
    yield
    if server := sys.modules.get("lamina.adapters.providers.local.llama_server"):
        server._servers.clear()


@pytest.fixture(autouse=True, scope="session")
def _data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Nothing that a test keeps lands in the user's own data folder."""
    folder = tmp_path_factory.mktemp("data")
    before = os.environ.get("LAMINA_DATA")
    os.environ["LAMINA_DATA"] = str(folder)
    yield folder
    if before is None:
        del os.environ["LAMINA_DATA"]
    else:
        os.environ["LAMINA_DATA"] = before
