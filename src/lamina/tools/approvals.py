"""The definitions of tools that a person has approved.

Law: a tool whose definition changed since it was first offered is not offered again until a person
has seen the change. A file that cannot be read is never overwritten, and nothing is offered based
on it.
"""

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import UsageError
from lamina.values.item import ItemId
from lamina.values.tool import OfferedTool, Toolset, WithheldTool

_VERSION = 1
_LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02


class ReviewedDefinition(Struct, frozen=True, kw_only=True):
    """A tool's own description."""

    digest: str
    description: str
    parameters: dict[str, Any]


class ToolChange(Struct, frozen=True, kw_only=True):
    """A tool whose definition differs from the approved one."""

    id: ItemId
    name: str
    label: str
    approved: ReviewedDefinition
    offered: ReviewedDefinition


class _Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    label: str
    approved: ReviewedDefinition
    pending: ReviewedDefinition | None = None


class _ApprovalsFile(Struct, kw_only=True):
    version: int = _VERSION
    tools: dict[ItemId, _Record] = {}


class Approvals:
    """The approvals in one file, which several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def review(self, tools: Sequence[OfferedTool]) -> Toolset:
        """The tools that may be offered; new ones are recorded, changed ones are withheld and their
        change is saved to be shown."""
        return await anyio.to_thread.run_sync(self._review, tuple(tools))

    async def changes(self) -> tuple[ToolChange, ...]:
        """The changes that wait for a person.

        Raises:
            UsageError: the file cannot be read.
        """
        return await anyio.to_thread.run_sync(self._changes)

    async def approve(self, tool: str, digest: str | None = None) -> None:
        """Approves the current definition of a tool, by its id or its name for the model; with
        `digest`, only that definition.

        Raises:
            UsageError: there is no such tool, it changed again, or the file cannot be used.
        """
        await anyio.to_thread.run_sync(self._approve, tool, digest)

    def _review(self, tools: tuple[OfferedTool, ...]) -> Toolset:
        try:
            book = self._read()
            if any(_differs(book.tools.get(tool.id), tool) for tool in tools):
                with self._locked():
                    # Another process may have written since.
                    book = self._read()
                    book.tools |= {
                        tool.id: _record(book.tools.get(tool.id), tool) for tool in tools
                    }
                    self._write(book)
        except UsageError as error:
            if not tools:
                return Toolset()
            detail = f"{error}. Until then the {len(tools)} tools of MCP servers are not offered"
            return Toolset(
                withheld=(WithheldTool(what="approvals", reason="invalid", detail=detail),)
            )
        records = {tool.id: book.tools[tool.id] for tool in tools}
        same = [tool for tool in tools if records[tool.id].approved.digest == tool.digest]
        others = [tool for tool in tools if records[tool.id].approved.digest != tool.digest]
        withheld = tuple(_withhold(tool, records[tool.id]) for tool in others)
        return Toolset(tools=tuple(same), withheld=withheld)

    def _changes(self) -> tuple[ToolChange, ...]:
        return tuple(
            ToolChange(
                id=id,
                name=tool.name,
                label=tool.label,
                approved=tool.approved,
                offered=tool.pending,
            )
            for id, tool in self._read().tools.items()
            if tool.pending is not None
        )

    def _approve(self, tool: str, digest: str | None) -> None:
        with self._locked():
            book = self._read()
            ids = {tool.name: id for id, tool in book.tools.items()}
            id = ids.get(tool, ItemId(tool))
            record = book.tools.get(id)
            if record is None:
                raise UsageError(
                    f"no tool {tool!r} was ever offered here; known are "
                    f"{', '.join(sorted(ids)) or 'none'}"
                )
            if record.pending is None:
                return  # its definition is the approved one
            if digest not in (None, record.pending.digest):
                raise UsageError(
                    f"the tool {record.label!r} changed once more since it was shown; look at it "
                    f"again and then approve it"
                )
            book.tools[id] = replace(record, approved=record.pending, pending=None)
            self._write(book)

    def _read(self) -> _ApprovalsFile:
        try:
            book = msgspec.json.decode(self.path.read_bytes(), type=_ApprovalsFile)
        except FileNotFoundError:
            return _ApprovalsFile()
        except OSError as error:
            raise UsageError(
                f"the approvals in {str(self.path)!r} cannot be read: {error.strerror or error}; "
                f"make the file readable"
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(
                f"the approvals in {str(self.path)!r} are damaged ({error}) and are left as they "
                f"are; mend the file, or delete it to approve every tool anew"
            ) from error
        if book.version != _VERSION:
            raise UsageError(
                f"the approvals in {str(self.path)!r} are of version {book.version}, and this "
                f"Lamina knows {_VERSION}; use the newer Lamina, or another file"
            )
        return book

    def _write(self, book: _ApprovalsFile) -> None:
        """All or nothing: the new file replaces the old one once it is on the disk."""
        data = msgspec.json.format(msgspec.json.encode(book, order="sorted"), indent=1) + b"\n"
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise self._unwritable(error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; the lock ends with the handle, even if a process is killed."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while not _lock(handle):
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"the approvals in {str(self.path)!r} are being written by another process "
                        f"for more than {_LOCK_SECONDS:g} s; end it and try again"
                    )
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the approvals in {str(self.path)!r} cannot be written: {error.strerror or error}; "
            f"make room, or make the folder writable"
        )


if sys.platform == "win32":

    def _lock(_: int) -> bool:
        """Without locks the last writer wins, but always writes a whole file."""
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Any other failure is a file system without locks.
            return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
        return True


def _define(tool: OfferedTool) -> ReviewedDefinition:
    return ReviewedDefinition(
        digest=tool.digest,
        description=tool.definition.description,
        parameters=tool.definition.parameters,
    )


def _record(record: _Record | None, tool: OfferedTool) -> _Record:
    if record is None:
        return _Record(name=tool.definition.name, label=tool.label, approved=_define(tool))
    is_changed = record.approved.digest != tool.digest
    return replace(record, pending=_define(tool) if is_changed else None)


def _differs(record: _Record | None, tool: OfferedTool) -> bool:
    return record != _record(record, tool)


def _withhold(tool: OfferedTool, record: _Record) -> WithheldTool:
    words = record.approved.description != tool.definition.description
    what = "description" if words else "arguments"
    return WithheldTool(
        what=tool.label,
        reason="changed",
        detail=f"its {what} changed since it was approved; see what changed, and approve it with "
        f"`lamina tools approve {tool.definition.name}`",
    )
