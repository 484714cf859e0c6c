"""What a folder brings that counts only once a person trusts it, and what they trusted."""

from typing import Any

from msgspec import Struct

# What a caller says of a folder: nothing, so that what was recorded counts; that all is trusted as
# it is now; or the digest of what is trusted.
Trust = bool | str


class NamedFile(Struct, frozen=True, kw_only=True):
    """A file that the command of a server names, by its content. `digest` is a word in brackets if
    it could not be read."""

    server: str
    path: str
    digest: str


class Claims(Struct, frozen=True, kw_only=True):
    """What an agent says beyond texts: servers as they are written, settings that loosen what keeps
    a person safe, and the model that is to be asked; of a file of hooks, that file. `place` is its
    real path, `digest` that of all of this, and `lines` what a person is shown. `problem` says why
    it cannot be known as it is."""

    place: str
    digest: str
    servers: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    model: str = ""
    files: tuple[NamedFile, ...] = ()
    hooks: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.servers or self.settings or self.model or self.hooks)


class TrustRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person trusted: the digest, what they were shown, and when (seconds since 1970)."""

    digest: str
    lines: tuple[str, ...] = ()
    at: float = 0.0
