from pathlib import Path

import pytest
from tests.packaging.environment import Environment, build_wheel, install


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Lamina without extras. What is written there stays for the tests after it."""
    return install(wheel, tmp_path_factory.mktemp("base"))
