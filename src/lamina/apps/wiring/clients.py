"""The providers of targets: the embedded model, or a vendor through its own SDK.

Law: keys come from the environment or the system's keyring, and go to the SDK and nowhere else.
"""

import os
from importlib import import_module
from typing import Protocol, runtime_checkable

import anyio
from msgspec.structs import replace

from lamina.adapters.files.extras import require
from lamina.core.ports import Provider, SessionKeeper
from lamina.core.values.settings import LOCAL_WIRES, Target
from lamina.errors import InvalidSetting, KeyMissing, ProviderError

SLOTS = 4
COMPATIBLE_URL = "LAMINA_COMPATIBLE_URL"
# The service name of keys in the system's keyring, where the user name is the provider.
KEYRING = "lamina"
# Short, since a person waits for the answer.
_TRIAL_S = 20.0


@runtime_checkable
class ClosableProvider(Protocol):
    async def aclose(self) -> None: ...


class Clients:
    """The providers of targets. An embedded model is loaded at its first request, once for all
    sessions of the process; it serves `slots` of them at a time (LAMINA_SLOTS, else 4, or fewer if
    these would need more than 2 GB). Each slot needs memory for a whole window: `window` makes it
    smaller than the target's own, and the sessions' setting of that name should have the same
    value. With `remember`, the model's memory of a session is kept in the cache folder when the
    session is closed or makes room for another, so that it need not be read again."""

    def __init__(
        self, *, slots: int | None = None, window: int | None = None, remember: bool = False
    ) -> None:
        self._slots = slots or _wished_slots()
        self._window = window
        self._remember = remember
        self._providers: dict[str, Provider] = {}

    async def provider(self, target: Target) -> Provider:
        """Return the provider of a target.

        Raises:
            ExtraMissing: the vendor's SDK or the embedded model's runtime is not installed.
            ModelMissing: the embedded model is not on this machine.
            KeyMissing: there is no key for the vendor.
            ProviderError: its address is not known.
        """
        if target.name not in self._providers:
            require(target.wire)
            local = target.wire in LOCAL_WIRES
            provider = await self._embedded(target) if local else _connect(target)
            self._providers[target.name] = provider
        return self._providers[target.name]

    async def release_session(self, session: str) -> None:
        """Put away the memory of a closed session."""
        for provider in self._providers.values():
            if isinstance(provider, SessionKeeper):
                await provider.release_session(session)

    async def aclose(self) -> None:
        """Close the connections; a provider that is requested again is reconnected."""
        providers, self._providers = list(self._providers.values()), {}
        for provider in providers:
            if isinstance(provider, ClosableProvider):
                await provider.aclose()

    async def _embedded(self, target: Target) -> Provider:
        from lamina.adapters.files.cache_folder import slots_folder
        from lamina.adapters.providers.local.client import LocalClient
        from lamina.adapters.providers.local.llama_server import LlamaServerConfig, start_server
        from lamina.adapters.providers.local.model_catalogue import find_model_file
        from lamina.adapters.providers.local.slots import most_slots

        path = await anyio.to_thread.run_sync(find_model_file, target.model)
        window = min(target.window, self._window or target.window)
        memory = slots_folder() if self._remember else None
        slots = self._slots or min(SLOTS, await anyio.to_thread.run_sync(most_slots, path, window))
        serving = LlamaServerConfig(path=path, window=window, slots=slots, slot_folder=memory)
        return LocalClient(await start_server(serving))


def require_reachable(target: Target) -> None:
    """Refuse a vendor without an address or a key. An embedded model needs neither.

    Raises:
        KeyMissing: there is no key for the vendor.
        ProviderError: its address is not known.
    """
    if target.wire != "llamacpp":
        find_key(target, needed=not _find_url(target))


def _find_url(target: Target) -> str:
    if target.base_url or target.provider != "compatible":
        return target.base_url
    if url := os.environ.get(COMPATIBLE_URL, ""):
        return url
    raise ProviderError(
        f"where is the server of {target.name!r}? Set {COMPATIBLE_URL}=http://host:port/v1, or "
        f"name it in your models file (LAMINA_MODELS) with its `base_url`"
    )


def _connect(target: Target) -> Provider:
    url = _find_url(target)
    key = find_key(target, needed=not url)
    module = import_module(f"lamina.adapters.providers.clients.{target.wire}")
    provider: Provider = module.connect(replace(target, base_url=url), key)
    return provider


@runtime_checkable
class ModelLister(Protocol):
    """A provider that can list the models available to a key."""

    async def list_models(self) -> tuple[str, ...]: ...


async def try_key(target: Target, key: str) -> tuple[str, ...]:
    """List the models that a vendor offers to a key; an empty key means the stored one. This is
    free of charge.

    Raises:
        ExtraMissing: the vendor's SDK is not installed.
        KeyMissing: there is no key, or it was refused.
        ProviderError: the vendor cannot be reached, or does not list its models.
    """
    require(target.wire)
    url = _find_url(target)
    key = key or find_key(target, needed=not url)
    module = import_module(f"lamina.adapters.providers.clients.{target.wire}")
    provider = module.connect(replace(target, base_url=url), key, timeout=_TRIAL_S)
    assert isinstance(provider, ModelLister)
    assert isinstance(provider, ClosableProvider)
    try:
        return await provider.list_models()
    finally:
        await provider.aclose()


def key_names(target: Target) -> tuple[str, ...]:
    """The environment variables that may contain the key for a target, the usual one first."""
    name = target.key_env or f"{target.provider.upper()}_API_KEY"
    return (name, "GOOGLE_API_KEY") if target.wire == "gemini" else (name,)


def find_key(target: Target, *, needed: bool = True) -> str:
    """Find the key for a target.

    Raises:
        KeyMissing: the key is needed but missing.
    """
    names = key_names(target)
    for name in names:
        if key := os.environ.get(name, "").strip():
            return key
    if key := _from_keyring(target.provider):
        return key
    if needed:
        raise KeyMissing(
            f"there is no key for {target.provider!r}: set {names[0]}, or store it in the system's "
            f"keyring (keyring set {KEYRING} {target.provider})"
        )
    return ""


def _from_keyring(provider: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING, provider) or ""
    except KeyringError:
        # No working keyring, as on a server: use the environment instead.
        return ""


def _wished_slots() -> int | None:
    setting = os.environ.get("LAMINA_SLOTS", "")
    if not setting:
        return None
    if not setting.isdigit() or int(setting) < 1:
        raise InvalidSetting("LAMINA_SLOTS", setting, "must be a whole number of 1 or more")
    return int(setting)
