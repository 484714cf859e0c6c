"""A session and its turns without `await`: every call waits in the portal until it is done."""

from typing import Any, Self

from lamina.apps.wiring import sessions
from lamina.core.audit.dropped_history import DroppedHistory
from lamina.core.journal import State
from lamina.core.ledger import CostRange
from lamina.core.ledger.cost import CacheRewrite
from lamina.core.ports import WorkspaceSource
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.envelope import Envelope, Options
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, ToolCall
from lamina.core.values.prompt import LayerSize, Prompt
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.settings import Settings
from lamina.core.values.usage import Usage
from lamina.engine.session.session import Session as AsyncSession
from lamina.engine.session.turn import Turn as AsyncTurn
from lamina.engine.sources.hooks import Hooks
from lamina.sync.portal import Portal
from lamina.sync.twin import (
    Mirror,
    Resource,
    Twin,
    closes,
    copies,
    documented,
    gives,
    opens,
    reads,
    renews,
    waits,
)


class Turn(Twin):
    """One prepared request, and after `commit` its answer; `lamina.Turn` without `await`."""

    _original: AsyncTurn

    # -- what is about to be sent ----------------------------------------------------------------

    id: Mirror[str] = Mirror(AsyncTurn.id)
    prompt: Mirror[Prompt] = Mirror(AsyncTurn.prompt)
    context: Mirror[RequestContext] = Mirror(AsyncTurn.context)
    options: Mirror[Options] = Mirror(AsyncTurn.options)
    citations: Mirror[tuple[int, ...]] = Mirror(AsyncTurn.citations)
    cost_range: Mirror[CostRange | None] = Mirror(AsyncTurn.cost_range)
    rewrite: Mirror[CacheRewrite | None] = Mirror(AsyncTurn.rewrite)
    layers: Mirror[tuple[LayerSize, ...]] = Mirror(AsyncTurn.layers)
    layer_digests: Mirror[dict[str, str]] = Mirror(AsyncTurn.layer_digests)
    processed_text: Mirror[str] = Mirror(AsyncTurn.processed_text)

    @property
    def entry(self) -> RequestEntry:
        """The request as the journal has it."""
        return self._original.entry

    @property
    def target(self) -> str:
        """The target of the turn's next request."""
        return self._original.target

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What applies to the request, as far as it is in it."""
        return self._original.attachments

    @documented(AsyncTurn.request)
    def request(self) -> dict[str, Any]:
        return self._original.request()

    # -- what came back --------------------------------------------------------------------------

    commit = renews(AsyncTurn.commit)
    resume = renews(AsyncTurn.resume)
    retry_smaller = renews(AsyncTurn.retry_smaller)
    reserve = waits(AsyncTurn.reserve)
    release = waits(AsyncTurn.release)
    answer: Mirror[str] = Mirror(AsyncTurn.answer)
    pending_calls: Mirror[tuple[ToolCall, ...]] = Mirror(AsyncTurn.pending_calls)
    usage: Mirror[Usage | None] = Mirror(AsyncTurn.usage)
    warnings: Mirror[tuple[str, ...]] = Mirror(AsyncTurn.warnings)
    stop_reason: Mirror[str] = Mirror(AsyncTurn.stop_reason)
    interrupted: Mirror[bool] = Mirror(AsyncTurn.interrupted)

    @documented(AsyncTurn.with_target, Self)
    def with_target(self, target: str) -> Self:
        return type(self)(self._portal, self._original.with_target(target))

    @property
    def message(self) -> Message | None:
        """The answer as a message; None before `commit`."""
        return self._original.message

    @property
    def verdict(self) -> CacheVerdict | None:
        """Whether the provider's cache did what was expected and, if not, why."""
        return self._original.verdict


def wrap_open_turn(portal: Portal, turn: AsyncTurn | None) -> Turn | None:
    """The turn that was left unfinished, if there is one."""
    return None if turn is None else Turn(portal, turn)


class Session(Resource):
    """One conversation; `lamina.Session` without `await`. Open one with `lamina.sync.open_session`;
    close it, or use it in `with`, so that it can be opened elsewhere."""

    _original: AsyncSession

    close = closes(AsyncSession.close)
    id: Mirror[str] = Mirror(AsyncSession.id)
    target = reads(AsyncSession.target)
    state: Mirror[State] = Mirror(AsyncSession.state)
    envelope: Mirror[Envelope] = Mirror(AsyncSession.envelope)
    settings: Mirror[Settings] = Mirror(AsyncSession.settings)
    entries: Mirror[tuple[Entry, ...]] = Mirror(AsyncSession.entries, in_loop=True)
    path: Mirror[tuple[Entry, ...]] = Mirror(AsyncSession.path, in_loop=True)
    damage: Mirror[tuple[Damage, ...]] = Mirror(AsyncSession.damage)
    interrupted: Mirror[bool] = Mirror(AsyncSession.interrupted)

    @property
    def workspace(self) -> WorkspaceSource:
        """Where attached paths are read from."""
        return self._original.workspace

    @property
    def hooks(self) -> Hooks:
        """The hooks of this session; register more here."""
        return self._original.hooks

    # -- a turn ----------------------------------------------------------------------------------

    prepare = gives(AsyncSession.prepare, Turn)
    current_turn = gives(AsyncSession.current_turn, wrap_open_turn)
    edit = gives(AsyncSession.edit, Turn)
    attachments_of = waits(AsyncSession.attachments_of)
    regenerate = gives(AsyncSession.regenerate, Turn)
    compact = waits(AsyncSession.compact)
    compactions: Mirror[tuple[DroppedHistory, ...]] = Mirror(AsyncSession.compactions, in_loop=True)

    # -- calls that wait -------------------------------------------------------------------------

    pending_calls: Mirror[tuple[ToolCall, ...]] = Mirror(AsyncSession.pending_calls, in_loop=True)
    keep_result = waits(AsyncSession.keep_result)
    read_result = waits(AsyncSession.read_result)
    keep_decision = waits(AsyncSession.keep_decision)
    abandon_turn = waits(AsyncSession.abandon_turn)

    # -- rules, references and tools --------------------------------------------------------------

    items = waits(AsyncSession.items)
    add = waits(AsyncSession.add)
    remove = waits(AsyncSession.remove)
    find_agent_changes = waits(AsyncSession.find_agent_changes)
    adopt_agent = waits(AsyncSession.adopt_agent)

    # -- the library -------------------------------------------------------------------------------

    pin = waits(AsyncSession.pin)
    preload = waits(AsyncSession.preload)
    preview_attachment = waits(AsyncSession.preview_attachment)
    find_changes = waits(AsyncSession.find_changes)
    refresh = waits(AsyncSession.refresh)
    unpin = waits(AsyncSession.unpin)
    forget = waits(AsyncSession.forget)
    set_system = waits(AsyncSession.set_system)
    set_tools = waits(AsyncSession.set_tools)
    apply = waits(AsyncSession.apply)
    add_message = waits(AsyncSession.add_message)
    rebuild_library = waits(AsyncSession.rebuild_library)
    update_settings = waits(AsyncSession.update_settings)
    export_requests = waits(AsyncSession.export_requests)
    spending = waits(AsyncSession.spending)

    # -- the tree --------------------------------------------------------------------------------

    navigate = waits(AsyncSession.navigate)
    label = waits(AsyncSession.label)
    rename = waits(AsyncSession.rename)
    add_custom_entry = waits(AsyncSession.add_custom_entry)
    fork = copies(AsyncSession.fork)
    save_as = copies(AsyncSession.save_as)


open_session = opens(sessions.open_session, Session)
