"""What a person or a program asks for: which session is opened and how, and what goes along with a
question. One record per question, whatever face it is asked through."""

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import fields

from lamina.core.values.item import AttachmentSpec
from lamina.core.values.note import Scope
from lamina.core.values.settings import Promotion
from lamina.core.values.web_access import WebAccess
from lamina.errors import UsageError

Mode = Literal["agent", "qa", "plan"]


class SettingChanges(Struct, frozen=True, kw_only=True):
    """Settings that are asked for now, whatever the session or its agent has. A value that is the
    default here was not asked for."""

    web: WebAccess | None = None
    allow_hosts: tuple[str, ...] = ()
    window: int | None = None
    attachment_limit: int | None = None
    promotion: Promotion | None = None
    spend_turn: float | None = None
    spend_session: float | None = None
    spend_day: float | None = None

    def as_settings(self) -> dict[str, Any]:
        """Those that were asked for, by name."""
        values = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: value for name, value, default in values if value != default}


class SessionOptions(Struct, frozen=True, kw_only=True):
    """Which session is opened, with whom and how. `session` is an id or the beginning of one, to
    continue that session; with `is_new` it is the id under which one is begun."""

    workspace: Path = Path()
    session: str | None = None
    is_new: bool = False
    target: str | None = None
    system: str = ""
    agent: str | None = None
    project: str | None = None
    # Files of hooks that are to take part.
    hooks: tuple[Path, ...] = ()
    # Whether what the agent's folder brings now counts, for this opening; and files of hooks.
    trust: bool = False
    mcp: Path | None = None
    mode: Mode = "agent"
    # Where notes are searched.
    scope: Scope = Scope()
    # Whether the model may look at the workspace's files, and change them.
    files: bool = False
    # Where the web is searched, if it is: an address, or the tool of a server.
    web_search: str | None = None
    # Whether the model is told what the person wants remembered.
    memory: bool = True
    # The most tokens an answer may have.
    max_tokens: int | None = None
    changes: SettingChanges = SettingChanges()

    @property
    def continued(self) -> str | None:
        """The session that goes on; None where one is begun."""
        return None if self.is_new else self.session


class PromptOptions(Struct, frozen=True, kw_only=True):
    """What goes along with a question; `active` is the note the person has open."""

    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    active: str | None = None

    @property
    def references(self) -> tuple[str, ...]:
        return (*self.attach, *self.essential, *((self.active,) if self.active else ()))

    def attachments(self) -> list[str | AttachmentSpec]:
        """What a runner is to attach."""
        open_note = [AttachmentSpec(what=self.active, shape="active")] if self.active else []
        essential = (AttachmentSpec(what=path, essential=True) for path in self.essential)
        return [*open_note, *self.attach, *essential]


def refuse_ignored(options: SessionOptions) -> None:
    """Refuses what would have no effect, before anything is opened or fetched.

    Raises:
        UsageError: something does not go with the mode.
    """
    if options.mode == "qa" and (options.mcp or options.files or options.web_search):
        raise UsageError(
            "--mode qa answers from notes and calls no tools: leave out the "
            "tools, or take --mode plan or agent"
        )
    if options.mode == "agent" and not options.files and options.scope != Scope():
        raise UsageError(
            "--in, --since and --until say where notes are searched, and nothing searches them: "
            "add --mode qa, --mode plan or --files"
        )
    if options.project is not None and options.agent is None:
        raise UsageError(f"--project {options.project!r} needs --agent: projects are an agent's")
    if options.is_new and not (options.session or "").strip():
        raise UsageError("--new goes with --session NAME: it begins a session under that name")
    is_about = options.agent or options.continued or options.hooks
    if options.trust and not is_about:
        raise UsageError(
            "--trust needs --agent or --hooks: it is about what a folder or a file brings"
        )
