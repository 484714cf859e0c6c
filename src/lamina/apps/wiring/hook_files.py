"""Hooks in a Python file that a person trusts.

Laws: a file is read once, and that text is judged, shown and run. A file counts if a person trusted
its current contents; a changed file is not trusted. Its imports must be installed: nothing next to
it is found, so its digest covers everything.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.agents.trusted_claims import show_text
from lamina.adapters.files.own_file import read_own_file
from lamina.apps.wiring.trust_lookup import FolderTrust, judge_claims
from lamina.core.values.agent import Claims, Trust
from lamina.engine.sources.hooks import Hook, Hooks, line_of
from lamina.errors import HookError, UsageError

MAX_BYTES = 1_000_000
# The prefix of the modules' names, so that they replace no other module.
_PACKAGE = "lamina_hooks"


class HookFile(Struct, frozen=True, kw_only=True):
    """A hooks file as it was read, and whether the person trusts it."""

    path: str
    source: bytes
    trust: FolderTrust


def is_hook_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a hooks file, by its name."""
    return os.fspath(path).endswith(".py")


def read_hook_file(
    path: str | os.PathLike[str],
    workspace: str | os.PathLike[str] | None,
    trust: Trust = False,
) -> HookFile:
    """Read the file without running it.

    Raises:
        UsageError: the file does not exist or cannot be read.
    """
    name = os.path.expanduser(path)
    source = read_own_file(name, MAX_BYTES)
    if source is None:
        raise UsageError(f"there is no file {name!r} to read hooks from")
    place, digest = os.path.realpath(name), hashlib.sha256(source).hexdigest()
    count = len(source.splitlines())
    lines = f"{count:,} line{'s' * (count != 1)} of Python ({digest[:12]})"
    whole = json.dumps({"place": place, "hooks": digest}, sort_keys=True)
    claims = Claims(
        place=place,
        digest=hashlib.sha256(whole.encode()).hexdigest(),
        hooks=(place,),
        lines=(f"hooks {show_text(place)}", f"  {lines} that run in every turn, as you"),
    )
    return HookFile(path=name, source=source, trust=judge_claims(claims, workspace, trust))


def load_hook_file(file: HookFile) -> Hooks:
    """Run a trusted file, and return what it registered on its `hooks`.

    Raises:
        HookError: it cannot be run, or has no hooks.
        UsageError: its current contents are not trusted.
    """
    if not file.trust.counts:
        raise UsageError(f"{file.path!r} is not trusted")
    module = ModuleType(f"{_PACKAGE}.{Path(file.path).stem}")
    module.__file__ = file.path
    # Dataclasses and similar code look names up there.
    sys.modules[module.__name__] = module
    try:
        code = compile(file.source, file.path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        problem = f"cannot be loaded: {type(error).__name__}: {error}{line_of(error, file.path)}"
        raise HookError(file.path, problem) from error
    hooks = module.__dict__.get("hooks")
    if not isinstance(hooks, Hooks):
        problem = "defines no `hooks`: write `hooks = lamina.Hooks()`, and register hooks on it"
        raise HookError(file.path, problem)
    if not (hooks.context_hooks or hooks.message_hooks):
        raise HookError(file.path, "registers nothing on its `hooks`")
    named = Hooks(timeout=hooks.timeout)
    named.context_hooks += (_named(hook, file.path) for hook in hooks.context_hooks)
    named.message_hooks += (_named(hook, file.path) for hook in hooks.message_hooks)
    return named


def _named(hook: Hook, path: str) -> Hook:
    return replace(hook, name=hook.name.removeprefix(f"{_PACKAGE}."), file=path)
