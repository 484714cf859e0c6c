"""Loads files of hooks that a person named, once they are trusted."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from anyio.to_thread import run_sync
from msgspec.structs import replace

from lamina.apps.views.session_options import SessionOptions
from lamina.engine.sources.hooks import Hooks
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.apps.wiring.trust_lookup import FolderTrust


class TrustAsker(Protocol):
    """Asks a person whether something is trusted."""

    def agree(self, folder: "FolderTrust") -> Awaitable[bool]: ...


async def load_hooks(options: SessionOptions, asker: TrustAsker | None = None) -> Hooks | None:
    """Return the hooks of all named files; None without files. A person is asked about a file that
    they did not trust in its current form.

    Raises:
        HookError: a file cannot be run, or has no hooks.
        UsageError: a file cannot be read, or is not trusted.
    """
    if not options.hooks:
        return None
    from lamina.apps.wiring.hook_files import load_hook_file, read_hook_file
    from lamina.apps.wiring.trust_lookup import keep_trust

    hooks = Hooks()
    for path in options.hooks:
        file = await run_sync(read_hook_file, path, options.workspace, options.trust)
        if not file.trust.counts:
            if asker is None or not await asker.agree(file.trust):
                raise UsageError(f"{file.trust.notice()}; or use --trust for this command only")
            if file.trust.can_be_kept:
                await run_sync(keep_trust, file.trust)
            # Use what was shown; the file is not read again, as it may have changed since.
            file = replace(file, trust=replace(file.trust, standing="given"))
        hooks = hooks.joined(load_hook_file(file))
    return hooks
