"""Keys of providers: which there are, kept and forgotten in the system's keyring, and tried.

Laws: a key is never given back and never told to anybody but the provider it is for. The
environment goes before the keyring, as whoever asks a provider looks there first.
"""

import os
import time
from typing import Any, Literal

from msgspec import Struct

from lamina.adapters.files.extras import install_hint, is_installed
from lamina.adapters.providers.local.model_catalogue import LOCAL_PREFIX
from lamina.adapters.providers.model_book import ModelBook
from lamina.apps.wiring.clients import KEYRING, key_names, try_key
from lamina.core.values.settings import Target
from lamina.errors import LaminaError, UsageError

# Models of this machine need no key.
LOCAL = LOCAL_PREFIX.rstrip(":")


class KeyRow(Struct, frozen=True, kw_only=True):
    """A provider and where its key is, never the key. `variables` may hold it."""

    provider: str
    variables: tuple[str, ...]
    has_key: bool
    source: Literal["", "environment", "keyring"]
    variable: str
    models: int


class KeyList(Struct, frozen=True, kw_only=True):
    """All providers that take a key. Without a keyring that works here `keyring` is empty, and
    `problem` says what to do instead."""

    keys: tuple[KeyRow, ...]
    keyring: str
    problem: str


class KeyTrial(Struct, frozen=True, kw_only=True):
    """What came of trying a key."""

    provider: str
    works: bool
    code: str
    message: str
    models: int | None
    seconds: float


def list_keys(book: ModelBook) -> KeyList:
    """Which providers have a key, and where."""
    ring, problem = _open_keyring()
    targets = _providers(book)
    names = book.names()
    return KeyList(
        keys=tuple(
            _row(provider, target, ring, sum(name.startswith(f"{provider}:") for name in names))
            for provider, target in targets.items()
        ),
        keyring="" if ring is None else _name_of(ring),
        problem=problem,
    )


def keep_key(provider: str, key: str, book: ModelBook) -> None:
    """Keeps a key in the system's keyring.

    Raises:
        UsageError: there is no such provider, no key, or no keyring that works.
    """
    target = find_provider(provider, book)
    text = key.strip()
    if not text or any(character.isspace() or not character.isprintable() for character in text):
        raise UsageError("that is no key: it is empty, or has blanks in it")
    ring, problem = _open_keyring()
    if ring is None:
        raise UsageError(f"{problem}, as {key_names(target)[0]}")
    try:
        ring.set_password(KEYRING, provider, text)
    # Backends raise whatever they like; none of it may hold the key.
    except Exception as error:  # noqa: BLE001
        raise UsageError(
            f"the keyring did not take the key ({type(error).__name__}); put it into the "
            f"environment instead, as {key_names(target)[0]}"
        ) from None


def forget_key(provider: str, book: ModelBook) -> None:
    """Removes a key from the system's keyring.

    Raises:
        UsageError: there is no such provider, or no key of it in the keyring.
    """
    find_provider(provider, book)
    ring, problem = _open_keyring()
    if ring is None:
        raise UsageError(problem)
    if not _kept(ring, provider):
        raise UsageError(f"the keyring has no key for {provider!r}; one in the environment stays")
    try:
        ring.delete_password(KEYRING, provider)
    except Exception as error:  # noqa: BLE001
        raise UsageError(f"the keyring did not remove it ({type(error).__name__})") from None


async def try_provider(provider: str, key: str, book: ModelBook) -> KeyTrial:
    """Makes a call that costs nothing and says whether a key works; an empty one is the kept one.

    Raises:
        UsageError: there is no such provider.
    """
    target = find_provider(provider, book)
    began = time.monotonic()
    works, code, models = True, "", None
    try:
        names = await try_key(target, key.strip())
        models = len(names)
        message = f"{provider} took the key, and lists {models:,} model{'s' * (models != 1)}"
    except LaminaError as error:
        works, code, message = False, error.code, str(error)
    if key.strip():
        message = message.replace(key.strip(), "…")
    return KeyTrial(
        provider=provider,
        works=works,
        code=code,
        message=message,
        models=models,
        seconds=round(time.monotonic() - began, 3),
    )


def find_provider(provider: str, book: ModelBook) -> Target:
    """Any target of a provider that takes a key.

    Raises:
        UsageError: there is none.
    """
    providers = _providers(book)
    if provider not in providers:
        raise UsageError(
            f"there is no provider {provider!r} that takes a key; there are {', '.join(providers)}"
        )
    return providers[provider]


def _providers(book: ModelBook) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for name in book.names():
        provider = name.partition(":")[0]
        if provider not in targets and provider != LOCAL:
            targets[provider] = book.find(name.replace("*", "any"))
    return targets


def _row(provider: str, target: Target, ring: Any, models: int) -> KeyRow:
    variables = key_names(target)
    variable = next((name for name in variables if os.environ.get(name, "").strip()), "")
    source: Literal["", "environment", "keyring"] = "environment" if variable else ""
    if not variable and ring is not None and _kept(ring, provider):
        source = "keyring"
    return KeyRow(
        provider=provider,
        variables=variables,
        has_key=bool(source),
        source=source,
        variable=variable,
        models=models,
    )


def _open_keyring() -> tuple[Any, str]:
    """The keyring of this system, or None and what to do instead."""
    instead = "put the key into the environment that Lamina is started in"
    if not is_installed("keyring"):
        return None, f"no keyring is installed ({install_hint('keyring')}); or {instead}"
    import keyring
    from keyring.backends import fail, null

    try:
        ring = keyring.get_keyring()
        works = ring.priority > 0 and not isinstance(ring, fail.Keyring | null.Keyring)
        backends = getattr(ring, "backends", None)
        works = works and (backends is None or bool(backends))
    # A backend of somebody else's may fail in any way.
    except Exception:  # noqa: BLE001
        works = False
    if not works:
        return None, f"this system has no keyring that works; {instead}"
    return ring, ""


def _name_of(ring: Any) -> str:
    return str(getattr(ring, "name", "") or type(ring).__name__)


def _kept(ring: Any, provider: str) -> bool:
    try:
        return bool(ring.get_password(KEYRING, provider))
    except Exception:  # noqa: BLE001
        return False
