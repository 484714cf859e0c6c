"""A session and its turns without `await`: every call waits in the portal until it is done."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from lamina.apps.wiring import sessions
from lamina.apps.wiring.opening_arguments import SessionOpening, takes
from lamina.core.audit.dropped_history import DroppedHistory
from lamina.core.journal import State
from lamina.core.ledger import CostRange
from lamina.core.ledger.cost import CacheRewrite
from lamina.core.ports import WorkspaceSource
from lamina.core.values.agent import AgentChange
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.envelope import Envelope, Options
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, Role, ToolCall, ToolDefinition, ToolResult, ToolText
from lamina.core.values.patch import Display, Patch, PatchOp
from lamina.core.values.prompt import LayerSize, Prompt
from lamina.core.values.request import CacheVerdict, LeftOut, RequestContext
from lamina.core.values.settings import Settings, SettingsUpdate, Target
from lamina.core.values.spend_limits import SpendStanding
from lamina.core.values.tool import Decision, OfferedTool
from lamina.core.values.usage import Usage
from lamina.engine.session import session as async_session
from lamina.engine.session import turn as async_turn
from lamina.engine.session.compactor import CompactionOutcome
from lamina.engine.session.members import SessionItem
from lamina.engine.session.tree import TreePosition
from lamina.engine.session.turn import Results
from lamina.engine.sources.attachments import Attachable, Attachments
from lamina.engine.sources.changes import LibraryChange
from lamina.engine.sources.hooks import Hooks
from lamina.sync.portal import Portal, portal


class Turn:
    """One prepared request, and after `commit` its answer; `lamina.Turn` without `await`."""

    def __init__(self, portal: Portal, turn: async_turn.Turn) -> None:
        self._portal = portal
        self._turn = turn

    # -- what is about to be sent ----------------------------------------------------------------

    @property
    def id(self) -> str:
        """The request's id in the journal."""
        return self._turn.id

    @property
    def entry(self) -> RequestEntry:
        """The request as the journal has it."""
        return self._turn.entry

    @property
    def target(self) -> str:
        """Whom the turn's next request goes to."""
        return self._turn.target

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What the request has of what applies to it."""
        return self._turn.attachments

    @property
    def prompt(self) -> Prompt:
        """The segments of the request, in wire order."""
        return self._turn.prompt

    @property
    def context(self) -> RequestContext:
        """What the request was built from and why, and what was left out."""
        return self._turn.context

    @property
    def options(self) -> Options:
        """How the model is to answer: as settings and options said for this request."""
        return self._turn.options

    @property
    def citations(self) -> tuple[int, ...]:
        """The numbers of the sources that the answer is held to cite from; empty if it is not."""
        return self._turn.citations

    @property
    def cost_range(self) -> CostRange | None:
        """The least and the most that the request can cost; as `lamina.Turn.cost_range`."""
        return self._turn.cost_range

    @property
    def rewrite(self) -> CacheRewrite | None:
        """What it costs because it writes again what a cache had; None if it does not."""
        return self._turn.rewrite

    @property
    def layers(self) -> tuple[LayerSize, ...]:
        """How large each layer of the request is."""
        return self._turn.layers

    @property
    def layer_digests(self) -> dict[str, str]:
        """The digest of each layer of the request."""
        return self._turn.layer_digests

    @property
    def processed_text(self) -> str:
        """The user message as the model gets it."""
        return self._turn.processed_text

    def request(self) -> dict[str, Any]:
        """The request in the target's wire form: keyword arguments for the vendor's client."""
        return self._turn.request()

    # -- what came back --------------------------------------------------------------------------

    def commit(self, reply: object, *, end: bool = True) -> "Turn":
        """Takes the provider's reply, and gives the answered turn; as `lamina.Turn.commit`."""
        return Turn(self._portal, self._portal.run(lambda: self._turn.commit(reply, end=end)))

    def resume(self, results: Results) -> "Turn":
        """The next request of this turn, with the results of its calls; as `lamina.Turn.resume`."""
        return Turn(self._portal, self._portal.run(lambda: self._turn.resume(results)))

    def with_target(self, target: str) -> "Turn":
        """The turn, whose next request goes to another target."""
        return Turn(self._portal, self._turn.with_target(target))

    def retry_smaller(self) -> "Turn":
        """The turn anew after a compaction, as the provider said that the request is too long; as
        `lamina.Turn.retry_smaller`."""
        return Turn(self._portal, self._portal.run(self._turn.retry_smaller))

    def reserve(self) -> None:
        """Reserves what sending the request once more may cost; as `lamina.Turn.reserve`."""
        self._portal.run(self._turn.reserve)

    def release(self) -> None:
        """Says that the request was not sent; as `lamina.Turn.release`."""
        self._portal.run(self._turn.release)

    @property
    def message(self) -> Message | None:
        """The answer as a message; None before `commit`."""
        return self._turn.message

    @property
    def answer(self) -> str:
        """The text of the answer; empty before `commit`."""
        return self._turn.answer

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls that wait for their results."""
        return self._turn.pending_calls

    @property
    def usage(self) -> Usage | None:
        """What the provider said the request cost, in tokens."""
        return self._turn.usage

    @property
    def verdict(self) -> CacheVerdict | None:
        """Whether the provider's cache did what was to be expected and, if not, why."""
        return self._turn.verdict

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about the request, failed hooks and the end of the turn."""
        return self._turn.warnings

    @property
    def stop_reason(self) -> str:
        """Why the model stopped, in the provider's words."""
        return self._turn.stop_reason

    @property
    def interrupted(self) -> bool:
        """Whether the reply ended without its terminator."""
        return self._turn.interrupted


class Session:
    """One conversation; `lamina.Session` without `await`. Make one with `lamina.sync.open_session`;
    close it, or use it in `with`, so that others can open it."""

    def __init__(self, portal: Portal, session: async_session.Session) -> None:
        self._portal = portal
        self._session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the session's file. What was prepared and not committed stays as it is."""
        self._portal.close(self._session.close)

    @property
    def id(self) -> str:
        """What the session is opened again by."""
        return self._session.id

    def target(self, name: str | None = None) -> Target:
        """The target the session talks to, or another one by name; as `lamina.Session.target`."""
        return self._portal.read(lambda: self._session.target(name))

    @property
    def workspace(self) -> WorkspaceSource:
        """Where attached paths are read from."""
        return self._session.workspace

    @property
    def hooks(self) -> Hooks:
        """The hooks of this session, to register more."""
        return self._session.hooks

    @property
    def state(self) -> State:
        """What the session amounts to now."""
        return self._session.state

    @property
    def envelope(self) -> Envelope:
        """System parts, tools and messages as they stand now."""
        return self._session.envelope

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._session.settings

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the session, abandoned branches included, in order of writing."""
        return self._portal.read(lambda: self._session.entries)

    @property
    def path(self) -> tuple[Entry, ...]:
        """The entries from the header to where the session goes on: all that counts."""
        return self._portal.read(lambda: self._session.path)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was wrong with the journal when it was opened."""
        return self._session.damage

    @property
    def interrupted(self) -> bool:
        """Whether the last request was prepared and never answered."""
        return self._session.interrupted

    # -- a turn ----------------------------------------------------------------------------------

    def prepare(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        tool_texts: Iterable[ToolText] = (),
    ) -> Turn:
        """The next request: what was typed, with what applies to it; as `lamina.Session.prepare`.

        Raises:
            BudgetError: what must be sent does not fit.
            PrefixMoved: bytes already sent would move without a recorded reason.
            TurnStateError: tool calls of the turn before still wait for their results.
        """
        turn = self._portal.run(
            lambda: self._session.prepare(text, attach=attach, target=target, tool_texts=tool_texts)
        )
        return Turn(self._portal, turn)

    def current_turn(self, *, target: str | None = None) -> Turn | None:
        """The turn that was left in the middle; as `lamina.Session.current_turn`."""
        turn = self._portal.run(lambda: self._session.current_turn(target=target))
        return None if turn is None else Turn(self._portal, turn)

    def edit(
        self,
        question: str,
        text: str,
        *,
        attach: Iterable[Attachable] | None = None,
        target: str | None = None,
    ) -> Turn:
        """Asks an earlier question otherwise, in its place; as `lamina.Session.edit`.

        Raises:
            NoSuchEntry: there is no such entry.
            UsageError: it is no question.
        """
        turn = self._portal.run(
            lambda: self._session.edit(question, text, attach=attach, target=target)
        )
        return Turn(self._portal, turn)

    def attachments_of(self, question: str) -> tuple[Attachable, ...]:
        """What a person attached to a question: what goes along if it is edited."""
        return self._portal.run(lambda: self._session.attachments_of(question))

    def regenerate(self, answer: str | None = None, *, target: str | None = None) -> Turn:
        """Asks for an answer again, the last one if none is named; as `lamina.Session.regenerate`.

        Raises:
            NoSuchEntry: there is no such entry.
            TurnStateError: nothing was asked yet.
        """
        turn = self._portal.run(lambda: self._session.regenerate(answer, target=target))
        return Turn(self._portal, turn)

    def compact(self) -> CompactionOutcome:
        """Lets the older part of history give way to a summary, now; as
        `lamina.Session.compact`."""
        return self._portal.run(self._session.compact)

    @property
    def compactions(self) -> tuple[DroppedHistory, ...]:
        """What compactions and prunes took out of the context of this path, with its messages."""
        return self._portal.read(lambda: self._session.compactions)

    # -- calls that wait -------------------------------------------------------------------------

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return self._portal.read(lambda: self._session.pending_calls)

    def keep_result(self, result: ToolResult, *, whole: str = "") -> ToolResult:
        """Writes down what a tool gave while other calls wait; as `lamina.Session.keep_result`."""
        return self._portal.run(lambda: self._session.keep_result(result, whole=whole))

    def read_result(self, what: str) -> str:
        """All of what a tool gave, also what was not sent: by its call's id, or a digest."""
        return self._portal.run(lambda: self._session.read_result(what))

    def keep_decision(
        self, call_id: str, tool: OfferedTool, decision: Decision, *, planned: bool = False
    ) -> None:
        """Writes down what a person decided about a call; as `lamina.Session.keep_decision`."""
        self._portal.run(
            lambda: self._session.keep_decision(call_id, tool, decision, planned=planned)
        )

    def abandon_turn(self, why: str = "The call was not run: the turn was stopped.") -> bool:
        """Ends a turn whose calls wait, so that something else can be asked; as
        `lamina.Session.abandon_turn`."""
        return self._portal.run(lambda: self._session.abandon_turn(why))

    # -- what is in ------------------------------------------------------------------------------

    def items(self) -> tuple[SessionItem, ...]:
        """What the session's agent always includes, then what was added by hand."""
        return self._portal.run(self._session.items)

    def add(self, what: str) -> bool:
        """Adds a rule, a reference or a tool to the session; as `lamina.Session.add`."""
        return self._portal.run(lambda: self._session.add(what))

    def remove(self, what: str) -> bool:
        """Takes a rule, a reference or a tool out of the session; as `lamina.Session.remove`."""
        return self._portal.run(lambda: self._session.remove(what))

    def find_agent_changes(self) -> tuple[AgentChange, ...]:
        """How the agent's files differ by now from what the session took over; as
        `lamina.Session.find_agent_changes`."""
        return self._portal.run(self._session.find_agent_changes)

    def adopt_agent(self) -> tuple[AgentChange, ...]:
        """Takes over what the agent's files say by now; as `lamina.Session.adopt_agent`."""
        return self._portal.run(self._session.adopt_agent)

    # -- what stays ------------------------------------------------------------------------------

    def pin(self, what: Attachable) -> bool:
        """Makes an item essential, named every turn and kept at boundaries. False if it was."""
        return self._portal.run(lambda: self._session.pin(what))

    def preload(self, attach: Iterable[Attachable]) -> tuple[LeftOut, ...]:
        """Lays items down before anything is asked, and gives what could not be had; as
        `lamina.Session.preload`."""
        return self._portal.run(lambda: self._session.preload(attach))

    def preview_attachment(self, what: Attachable) -> Attachments:
        """What an attachment would bring, or why it cannot be had; nothing is attached."""
        return self._portal.run(lambda: self._session.preview_attachment(what))

    def find_changes(self) -> tuple[LibraryChange, ...]:
        """What stands in the context and is no longer as the workspace has it. Changes nothing."""
        return self._portal.run(self._session.find_changes)

    def refresh(self) -> tuple[LibraryChange, ...]:
        """Brings what stands up to date, and gives what changed; as `lamina.Session.refresh`."""
        return self._portal.run(self._session.refresh)

    def unpin(self, what: str) -> bool:
        """Takes a pin away; `what` is an item id or its path or name. False if there was none."""
        return self._portal.run(lambda: self._session.unpin(what))

    def forget(self, what: str) -> bool:
        """Lets an item leave the library at the next boundary. False if none stands there."""
        return self._portal.run(lambda: self._session.forget(what))

    def set_system(self, name: str, text: str, *, reason: str) -> None:
        """Sets one system part: a boundary once something was sent, hence the reason."""
        self._portal.run(lambda: self._session.set_system(name, text, reason=reason))

    def set_tools(self, tools: Sequence[ToolDefinition], *, reason: str) -> None:
        """Replaces the tools, which stand first on every wire."""
        self._portal.run(lambda: self._session.set_tools(tools, reason=reason))

    def apply(
        self,
        transformer: str,
        *ops: PatchOp | Patch | Mapping[str, Any],
        display: Display | None = None,
    ) -> None:
        """Applies patch operations, whole or not at all; as `lamina.Session.apply`.

        Raises:
            InvalidPatch: an op is wrong; nothing was changed.
        """
        self._portal.run(lambda: self._session.apply(transformer, *ops, display=display))

    def add_message(
        self, text: str, *, role: Role = "user", custom_type: str = "", shown: bool = True
    ) -> None:
        """Adds a message to history that is no question; as `lamina.Session.add_message`.

        Raises:
            TurnStateError: a turn is under way; a runner's `send_message` reaches it.
            UsageError: the message is blank, or of the role of a tool.
        """
        self._portal.run(
            lambda: self._session.add_message(text, role=role, custom_type=custom_type, shown=shown)
        )

    def rebuild_library(self, reason: str) -> bool:
        """Rebuilds the library now, at the price of the prefix. False if nothing would change."""
        return self._portal.run(lambda: self._session.rebuild_library(reason))

    def update_settings(self, **settings: Unpack[SettingsUpdate]) -> Settings:
        """Changes settings of this session from the next turn on; as
        `lamina.Session.update_settings`."""
        return self._portal.run(lambda: self._session.update_settings(**settings))

    def spending(self) -> SpendStanding:
        """What this session spent, its last turn, and everybody today; as
        `lamina.Session.spending`."""
        return self._portal.run(self._session.spending)

    # -- the tree --------------------------------------------------------------------------------

    def export_requests(self) -> tuple[dict[str, Any], ...]:
        """Every request of the session as plain data; as `lamina.Session.export_requests`."""
        return self._portal.run(self._session.export_requests)

    def navigate(self, entry: str, *, summary: str = "") -> TreePosition:
        """Goes on at another entry; as `lamina.Session.navigate`.

        Raises:
            NoSuchEntry: there is no such entry.
        """
        return self._portal.run(lambda: self._session.navigate(entry, summary=summary))

    def label(self, entry: str, text: str) -> None:
        """Gives an entry a name; an empty one takes it away."""
        self._portal.run(lambda: self._session.label(entry, text))

    def rename(self, name: str) -> None:
        """Gives the session a name that people are shown."""
        self._portal.run(lambda: self._session.rename(name))

    def add_custom_entry(self, kind: str, data: Any = None) -> None:
        """Keeps data of an application's own in the journal; it is part of no context."""
        self._portal.run(lambda: self._session.add_custom_entry(kind, data))

    def fork(self, session: str | None = None, *, at: str | None = None) -> "Session":
        """A session of its own that begins with this one's path; as `lamina.Session.fork`."""
        copy = self._portal.open(lambda: self._session.fork(session, at=at))
        return Session(self._portal, copy)

    def save_as(self, session: str | None = None) -> "Session":
        """The whole tree as another session: for when the file of this one is gone."""
        return Session(self._portal, self._portal.open(lambda: self._session.save_as(session)))


@takes(SessionOpening)
def open_session(session: str | None = None, **opening: Unpack[SessionOpening]) -> Session:
    """Opens a session: a new one, or one that `store` holds under the id `session`. Takes what
    `lamina.open_session` takes, which tells what each of it means.

    Raises:
        SessionBusy: the session is open elsewhere.
        TypeError: a word is given that it does not take.
        UsageError: there is no such agent.
    """
    here = portal()
    return Session(here, here.open(lambda: sessions.open_session(session, **opening)))
