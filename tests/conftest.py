"""Property tests draw anew on every run by hand; in CI they draw the same, so that a red run is
about the change and not about luck."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


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
