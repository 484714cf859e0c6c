"""Runs a GGUF model in this process, behind llama.cpp's own server on the loopback.

Laws: a model is loaded once per process and settings. Nothing leaves the machine: the server
listens on the loopback with a key that exists only in this process, and proxies are not used.
"""

import os
import re
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
from msgspec import Struct

from lamina.adapters.files.extras import require
from lamina.adapters.files.locks import hold_file
from lamina.adapters.providers.local.gguf import read_metadata
from lamina.adapters.providers.local.slots import SlotFiles, Slots
from lamina.errors import ProviderError

# A request can be stopped only between batches; with larger ones that takes ten seconds.
BATCH_TOKENS = 512
CONTROL_TOKEN_TYPE = 3  # token type in GGUF


class LlamaServerConfig(Struct, frozen=True, kw_only=True):
    """Settings for running a model. The window applies to each slot."""

    path: Path
    window: int
    slots: int = 4
    # Where slots are saved between turns and processes; None: nowhere.
    slot_folder: Path | None = None

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ProviderError(f"a model needs at least one slot, not {self.slots}")


class LlamaServer(Struct, frozen=True, kw_only=True):
    """A running model."""

    native_server: Any
    address: str
    key: str
    slots: Slots
    control_tokens: re.Pattern[str] | None
    slot_files: SlotFiles | None = None


_servers: dict[LlamaServerConfig, LlamaServer] = {}
_start_lock = anyio.Lock()


async def start_server(config: LlamaServerConfig) -> LlamaServer:
    """Return the running model, loaded on the first call.

    Raises:
        ExtraMissing: the runtime is not installed.
        ProviderError: the file cannot be loaded.
    """
    async with _start_lock:
        if config not in _servers:
            _servers[config] = await anyio.to_thread.run_sync(partial(_load, config))
        return _servers[config]


def _load(config: LlamaServerConfig) -> LlamaServer:
    require("llamacpp")
    import xllamacpp

    hold_file(config.path)
    control_tokens = _control_tokens(config.path)
    params = xllamacpp.CommonParams()
    params.model.path = str(config.path)
    params.n_ctx = config.window * config.slots
    params.n_parallel = config.slots
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.verbosity = -1
    params.warmup = False
    # A slot belongs to its session: llama.cpp must neither shift nor restore anything itself.
    params.ctx_shift = False
    params.n_cache_reuse = 0
    params.cache_ram_mib = 0
    slot_files = SlotFiles(config.slot_folder, config.path) if config.slot_folder else None
    if slot_files:
        params.slot_save_path = f"{slot_files.folder}{os.sep}"
        params.endpoint_slots = True
    key = token_hex(16)
    params.api_keys = [key]
    threads = os.environ.get("LAMINA_THREADS")
    if threads and threads.isdigit():
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    try:
        native_server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        raise ProviderError(
            f"llama.cpp cannot load {str(config.path)!r}: {error}; is it a chat model in GGUF?"
        ) from error
    return LlamaServer(
        native_server=native_server,
        address=native_server.listening_address,
        key=key,
        slots=Slots(config.slots),
        control_tokens=control_tokens,
        slot_files=slot_files,
    )


def _control_tokens(path: Path) -> re.Pattern[str] | None:
    """Return a pattern for this model's control tokens: text that contains one must not act as
    one."""
    keys = ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type")
    metadata = read_metadata(path, keys)
    tokens, types = (metadata.get(key) or () for key in keys)
    control_tokens = [
        token
        for token, kind in zip(tokens, types, strict=False)
        if kind == CONTROL_TOKEN_TYPE and token
    ]
    if not control_tokens:
        return None
    return re.compile("|".join(map(re.escape, sorted(control_tokens, key=len, reverse=True))))


def defuse_control_tokens(value: Any, control_tokens: re.Pattern[str] | None) -> Any:
    """Return a string, or a JSON value with all its strings, with the model's control tokens broken
    up into plain text."""
    if control_tokens is None:
        return value
    match value:
        case str():
            return control_tokens.sub(lambda match: f"{match[0][0]} {match[0][1:]}", value)
        case list():
            return [defuse_control_tokens(inner, control_tokens) for inner in value]
        case dict():
            return {
                defuse_control_tokens(key, control_tokens): defuse_control_tokens(
                    inner, control_tokens
                )
                for key, inner in value.items()
            }
        case _:
            return value
