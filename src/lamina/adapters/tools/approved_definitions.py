"""Records the tool definitions that a person has approved.

Law: a tool whose definition changed since it was first offered is not offered again until a person
has seen the change. An unreadable file is never overwritten, and no tool is offered based on it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.shared_file import SharedFile
from lamina.core.values.item import ItemId
from lamina.core.values.tool import OfferedTool, Toolset, WithheldTool
from lamina.errors import UsageError


class ReviewedDefinition(Struct, frozen=True, kw_only=True):
    """A tool definition as described by its server."""

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
    version: int = 1
    tools: dict[ItemId, _Record] = {}


class Approvals:
    """The approvals in a file that several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SharedFile(path, _ApprovalsFile, "approvals", "approve every tool again")

    async def review(self, tools: Sequence[OfferedTool]) -> Toolset:
        """Return the tools that may be offered. New tools are recorded; changed ones are withheld,
        and their changes saved for display."""
        return await anyio.to_thread.run_sync(self._review, tuple(tools))

    async def changes(self) -> tuple[ToolChange, ...]:
        """Return the changes that await a person's review.

        Raises:
            UsageError: the file cannot be read.
        """
        return await anyio.to_thread.run_sync(self._changes)

    async def approve(self, tool: str, digest: str | None = None) -> None:
        """Approve the current definition of a tool, given by its id or its name for the model; with
        `digest`, only that definition.

        Raises:
            UsageError: the tool does not exist, it changed again, or the file cannot be used.
        """
        await anyio.to_thread.run_sync(self._approve, tool, digest)

    def _review(self, tools: tuple[OfferedTool, ...]) -> Toolset:
        try:
            book = self._file.read()
            if any(_differs(book.tools.get(tool.id), tool) for tool in tools):
                with self._file.locked():
                    # Another process may have written in the meantime.
                    book = self._file.read()
                    book.tools |= {
                        tool.id: _record(book.tools.get(tool.id), tool) for tool in tools
                    }
                    self._file.write(book)
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
            for id, tool in self._file.read().tools.items()
            if tool.pending is not None
        )

    def _approve(self, tool: str, digest: str | None) -> None:
        with self._file.locked():
            book = self._file.read()
            ids = {tool.name: id for id, tool in book.tools.items()}
            id = ids.get(tool, ItemId(tool))
            record = book.tools.get(id)
            if record is None:
                raise UsageError(
                    f"no tool {tool!r} was ever offered here; known tools: "
                    f"{', '.join(sorted(ids)) or 'none'}"
                )
            if record.pending is None:
                return  # its definition is the approved one
            if digest not in (None, record.pending.digest):
                raise UsageError(
                    f"the tool {record.label!r} changed again after it was shown; review it "
                    f"again, then approve it"
                )
            book.tools[id] = replace(record, approved=record.pending, pending=None)
            self._file.write(book)


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
