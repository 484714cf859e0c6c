"""Keys of providers: listed, stored in and removed from the system's keyring, and tested.

Laws: a key is never returned, and sent only to its own provider. The environment takes precedence
over the keyring, as it does when a provider is called.
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

# Models on this machine need no key.
LOCAL = LOCAL_PREFIX.rstrip(":")


class KeyRow(Struct, frozen=True, kw_only=True):
    """A provider and where its key is, never the key. `variables` are checked for it."""

    provider: str
    variables: tuple[str, ...]
    has_key: bool
    source: Literal["", "environment", "keyring"]
    variable: str
    models: int


class KeyList(Struct, frozen=True, kw_only=True):
    """All providers that use a key. Without a working keyring `keyring` is empty, and `problem`
    says what to do instead."""

    keys: tuple[KeyRow, ...]
    keyring: str
    problem: str


class KeyTrial(Struct, frozen=True, kw_only=True):
    """The result of testing a key."""

    provider: str
    works: bool
    code: str
    message: str
    models: int | None
    seconds: float


def list_keys(book: ModelBook) -> KeyList:
    """Return which providers have a key, and where."""
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
    """Store a key in the system's keyring.

    Raises:
        UsageError: the provider is unknown, the key is invalid, or no keyring works.
    """
    target = find_provider(provider, book)
    text = key.strip()
    if not text or any(character.isspace() or not character.isprintable() for character in text):
        raise UsageError("not a valid key: it is empty or contains spaces")
    ring, problem = _open_keyring()
    if ring is None:
        raise UsageError(f"{problem}, as {key_names(target)[0]}")
    try:
        ring.set_password(KEYRING, provider, text)
    # Keyring backends raise all kinds of errors, which may contain the key.
    except Exception as error:  # noqa: BLE001
        raise UsageError(
            f"the keyring did not store the key ({type(error).__name__}); set it in the "
            f"environment instead, as {key_names(target)[0]}"
        ) from None


def forget_key(provider: str, book: ModelBook) -> None:
    """Remove a key from the system's keyring.

    Raises:
        UsageError: the provider is unknown, or the keyring has no key of it.
    """
    find_provider(provider, book)
    ring, problem = _open_keyring()
    if ring is None:
        raise UsageError(problem)
    if not _kept(ring, provider):
        raise UsageError(f"no key for {provider!r} in the keyring; environment keys stay")
    try:
        ring.delete_password(KEYRING, provider)
    except Exception as error:  # noqa: BLE001
        raise UsageError(f"the keyring did not remove it ({type(error).__name__})") from None


async def try_provider(provider: str, key: str, book: ModelBook) -> KeyTrial:
    """Test a key with a free call; an empty key means the stored one.

    Raises:
        UsageError: the provider is unknown.
    """
    target = find_provider(provider, book)
    began = time.monotonic()
    works, code, models = True, "", None
    try:
        names = await try_key(target, key.strip())
        models = len(names)
        message = f"{provider} accepted the key and lists {models:,} model{'s' * (models != 1)}"
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
    """Return any target of a provider that uses a key.

    Raises:
        UsageError: there is no such provider.
    """
    providers = _providers(book)
    if provider not in providers:
        raise UsageError(f"no provider {provider!r} uses a key; available: {', '.join(providers)}")
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
    """Return the keyring of this system, or None and what to do instead."""
    instead = "set the key in the environment that Lamina starts in"
    if not is_installed("keyring"):
        return None, f"no keyring is installed ({install_hint('keyring')}); or {instead}"
    import keyring
    from keyring.backends import fail, null

    try:
        ring = keyring.get_keyring()
        works = ring.priority > 0 and not isinstance(ring, fail.Keyring | null.Keyring)
        backends = getattr(ring, "backends", None)
        works = works and (backends is None or bool(backends))
    # Third-party backends may fail in any way.
    except Exception:  # noqa: BLE001
        works = False
    if not works:
        return None, f"this system has no working keyring; {instead}"
    return ring, ""


def _name_of(ring: Any) -> str:
    return str(getattr(ring, "name", "") or type(ring).__name__)


def _kept(ring: Any, provider: str) -> bool:
    try:
        return bool(ring.get_password(KEYRING, provider))
    except Exception:  # noqa: BLE001
        return False
