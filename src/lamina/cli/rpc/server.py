"""`lamina rpc`: a session for programs in any language. docs/rpc.md is the protocol.

Laws: standard output carries JSON-RPC and nothing else. One turn at a time; what may happen while
it runs (approve, abort, send_message, looking) is served meanwhile, in the order it was asked for.
The end of the input ends it all, and what came of an answer is kept.
"""

import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console

from lamina import __version__
from lamina.cli.ask import AllowAllApprover, attachments, limit_answers
from lamina.cli.rpc.jsonrpc import (
    FAILED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    UNKNOWN_METHOD,
    JsonRpcCall,
    JsonRpcFault,
    JsonRpcPeer,
    OverlongLine,
    read_call,
    split_lines,
)
from lamina.cli.rpc.session_data import describe_session_items, describe_settings, read_settings
from lamina.cli.runner import RunOptions, ensure_target, open_runner
from lamina.cli.stdio import open_input, own_descriptors, stop_on_signals
from lamina.errors import LaminaError, TurnStateError
from lamina.faces.answer import describe_outcome
from lamina.faces.items import ItemOverview
from lamina.faces.request_context import describe_context
from lamina.faces.session_tree import describe_tree
from lamina.ports import TargetBook
from lamina.providers.model_book import load_book
from lamina.runners.error_groups import single_errors
from lamina.runners.runner import AgentRunner, Answer, ChatRunner, Delivery
from lamina.values.event import ApprovalWanted, Event, ToolFinished
from lamina.values.message import ToolCall
from lamina.values.tool import Decision, OfferedTool

Handler = Callable[[Any], Awaitable[object]]


class PromptDefaults(Struct, frozen=True, kw_only=True):
    """What holds for every prompt."""

    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    allow_tools: bool = False
    max_tokens: int | None = None


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a method that takes none."""


class PromptParams(Params, frozen=True, kw_only=True):
    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class ContextParams(Params, frozen=True, kw_only=True):
    full: bool = False


class ApproveParams(Params, frozen=True, kw_only=True):
    call_id: str
    decision: Decision


class NavigateParams(Params, frozen=True, kw_only=True):
    entry: str
    summary: str = ""


class MessageParams(Params, frozen=True, kw_only=True):
    text: str
    deliver: Delivery = "steer"


class PinParams(Params, frozen=True, kw_only=True):
    what: str


class ItemParams(Params, frozen=True, kw_only=True):
    """`what` is rule:NAME, ref:NAME or tool:SERVER/NAME."""

    what: str


async def serve(served: PromptDefaults, options: RunOptions) -> int:
    """Serves until the input ends or somebody wants it to; gives the exit code."""
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    desk = PendingApprovals()
    approver = AllowAllApprover() if served.allow_tools else desk
    with own_descriptors() as (source, sink):
        async with stop_on_signals() as stop:
            runner = await open_runner(options, console, approver=approver)
            async with runner:
                if served.max_tokens not in (None, runner.session.envelope.options.max_tokens):
                    await limit_answers(runner, served.max_tokens)
                server = RpcServer(runner, desk, sink, served=served, console=console)
                stop.abort = server.stop
                async with open_input(source) as chunks:
                    await server.run(split_lines(chunks))
    return stop.exit_code


class PendingApprovals:
    """Where calls wait for a decision. Several can wait; they are decided in any order."""

    def __init__(self) -> None:
        self._waiting: dict[str, anyio.Event] = {}
        self._decisions: dict[str, Decision] = {}

    def announce(self, call_id: str) -> None:
        self._waiting[call_id] = anyio.Event()

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        await self._waiting.setdefault(call.id, anyio.Event()).wait()
        return self._decisions[call.id]

    def give(self, call_id: str, decision: Decision) -> None:
        """Decides a call that waits.

        Raises:
            TurnState: no such call waits.
        """
        if call_id not in self._waiting or call_id in self._decisions:
            waiting = [each for each in self._waiting if each not in self._decisions]
            raise TurnStateError(f"no call {call_id!r} waits; those that do: {waiting!r}")
        self._decisions[call_id] = decision
        self._waiting[call_id].set()

    def close(self, call_id: str) -> None:
        """The call has its result: there is nothing to decide any more."""
        self._waiting.pop(call_id, None)
        self._decisions.pop(call_id, None)

    def clear(self) -> None:
        self._waiting.clear()
        self._decisions.clear()


class RpcServer:
    """One session and its client."""

    def __init__(
        self,
        runner: ChatRunner,
        desk: PendingApprovals,
        sink: int,
        *,
        served: PromptDefaults,
        console: Console,
        book: TargetBook | None = None,
    ) -> None:
        self._runner = runner
        self._session = runner.session
        self._desk = desk
        self._served = served
        self._console = console
        self._book = book or load_book()
        self._members = ItemOverview(runner)
        self._reading = anyio.CancelScope()
        self._peer = JsonRpcPeer(sink, self._lose_peer)
        # The turn or compaction under way: there is one at a time.
        self._job: anyio.CancelScope | None = None
        self._group: TaskGroup | None = None
        self._closing: JsonRpcCall | None = None
        jobs: Mapping[str, tuple[type, Handler]] = {
            "prompt": (PromptParams, self._prompt),
            "resume": (Params, self._resume),
            "compact": (Params, self._compact),
        }
        idle: Mapping[str, tuple[type, Handler]] = {
            "navigate": (NavigateParams, self._navigate),
            "pin": (PinParams, self._pin),
            "unpin": (PinParams, self._unpin),
            "add": (ItemParams, self._add),
            "remove": (ItemParams, self._remove),
            "settings": (dict, self._settings),
        }
        always: Mapping[str, tuple[type, Handler]] = {
            "abort": (Params, self._abort),
            "approve": (ApproveParams, self._approve),
            "get_context": (ContextParams, self._get_context),
            "items": (Params, self._items),
            "send_message": (MessageParams, self._send_message),
            "shutdown": (Params, self._shutdown),
            "tree": (Params, self._tree),
        }
        self._jobs, self._idle = jobs, idle
        self._methods = {**jobs, **idle, **always}

    async def run(self, lines: AsyncIterator[bytes | OverlongLine]) -> None:
        """Serves what comes in until it ends; then stops what is under way."""
        await self._peer.notify("ready", self._introduction())
        with single_errors():
            async with anyio.create_task_group() as self._group:
                with self._reading:
                    async for line in lines:
                        if isinstance(line, OverlongLine) or line.strip():
                            await self._take(line)
                        if self._closing:
                            break
                self._stop_job()
        if self._closing:
            await self._peer.answer(self._closing, None)

    def stop(self) -> bool:
        """Ends serving, as the end of the input would."""
        self._reading.cancel()
        return True

    def _lose_peer(self) -> None:
        self._reading.cancel()
        self._stop_job()

    def _introduction(self) -> dict[str, object]:
        return {
            "session": self._session.id,
            "target": self._session.target().name,
            "version": __version__,
            "interrupted": self._session.interrupted,
            "waiting": msgspec.to_builtins(self._session.waiting),
        }

    # -- calls -----------------------------------------------------------------------------------

    async def _take(self, line: bytes | OverlongLine) -> None:
        try:
            call = read_call(line)
        except JsonRpcFault as fault:
            await self._peer.refuse(fault)
            return
        found = self._methods.get(call.method)
        if found is None:
            known = ", ".join(sorted(self._methods))
            problem = f"no method {call.method!r}; there are {known}"
            await self._fail(call, JsonRpcFault(UNKNOWN_METHOD, problem))
            return
        kind, handler = found
        try:
            params: Any = msgspec.convert(call.params, kind)
        except msgspec.ValidationError as error:
            await self._fail(call, JsonRpcFault(INVALID_PARAMS, f"{call.method}: {error}"))
            return
        if self._job is not None and call.method in (*self._jobs, *self._idle):
            busy = TurnStateError("a turn is under way: wait for it, or abort it")
            await self._fail(call, _fault_of(busy))
        elif call.method in self._jobs:
            assert self._group is not None
            self._job = anyio.CancelScope()
            self._group.start_soon(self._work, call, handler, params, self._job)
        elif call.method == "shutdown":
            self._closing = call
        else:
            await self._do(call, handler, params)

    async def _work(
        self, call: JsonRpcCall, handler: Handler, params: object, scope: anyio.CancelScope
    ) -> None:
        """A job, in a scope that can be stopped also before or after the runner's own."""
        with scope:
            await self._do(call, handler, params)
        if scope.cancelled_caught:
            self._end_job()
            stopped = JsonRpcFault(FAILED, "stopped before it began", data={"code": "aborted"})
            await self._fail(call, stopped)

    async def _do(self, call: JsonRpcCall, handler: Handler, params: object) -> None:
        fault: JsonRpcFault | None = None
        result: object = None
        try:
            result = await handler(params)
        except JsonRpcFault as error:
            fault = error
        except LaminaError as error:
            fault = _fault_of(error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, the client waits for an answer; a person finds the rest there.
            traceback.print_exc(file=sys.stderr)
            fault = JsonRpcFault(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        if call.method in self._jobs:
            # Before it is answered: whoever reads the answer may ask the next thing at once.
            self._end_job()
        if fault is not None:
            await self._fail(call, fault)
        else:
            await self._peer.answer(call, result)

    async def _fail(self, call: JsonRpcCall, fault: JsonRpcFault) -> None:
        if call.wants_answer:
            fault.id = call.id
            await self._peer.refuse(fault)

    def _end_job(self) -> None:
        self._job = None
        self._desk.clear()

    def _stop_job(self) -> bool:
        if self._job is None:
            return False
        if not self._runner.abort():
            self._job.cancel()
        return True

    # -- methods ---------------------------------------------------------------------------------

    async def _prompt(self, params: PromptParams) -> object:
        if not params.text.strip():
            raise JsonRpcFault(INVALID_PARAMS, "prompt: `text` is blank")
        await ensure_target(self._session.target(params.target), self._console)
        served = self._served
        wanted = attachments(
            (*served.attach, *params.attach), (*served.essential, *params.essential)
        )
        return self._outcome(
            await self._runner.run(
                params.text, attach=wanted, target=params.target, on_event=self._tell
            )
        )

    async def _resume(self, params: Params) -> object:  # noqa: ARG002
        return self._outcome(await self._runner.go_on(on_event=self._tell))

    def _outcome(self, answer: Answer) -> object:
        return describe_outcome(answer, self._session)

    async def _tell(self, event: Event) -> None:
        match event:
            case ApprovalWanted(call=call):
                self._desk.announce(call.id)
            case ToolFinished(result=result):
                self._desk.close(result.call_id)
            case _:
                pass
        await self._peer.notify("event", event)

    async def _compact(self, params: Params) -> object:  # noqa: ARG002
        return msgspec.to_builtins(await self._session.compact())

    async def _navigate(self, params: NavigateParams) -> object:
        position = await self._session.navigate(params.entry, summary=params.summary)
        return asdict(position)

    async def _pin(self, params: PinParams) -> object:
        return {"changed": await self._session.pin(params.what)}

    async def _unpin(self, params: PinParams) -> object:
        return {"changed": await self._session.unpin(params.what)}

    async def _items(self, params: Params) -> object:  # noqa: ARG002
        await self._look_at_members()
        return describe_session_items(self._members)

    async def _add(self, params: ItemParams) -> object:
        await self._look_at_members()
        return {"changed": await self._session.add(params.what)}

    async def _remove(self, params: ItemParams) -> object:
        await self._look_at_members()
        return {"changed": await self._session.remove(params.what)}

    async def _look_at_members(self) -> None:
        # While a turn runs its tools are known, and a slow server must not keep `abort` waiting.
        await self._members.look_up(tools=self._job is None)

    async def _settings(self, params: dict[str, Any]) -> object:
        given = read_settings(params, self._session.settings)
        if given:
            await self._session.change(**given)
        return describe_settings(self._session.settings)

    async def _abort(self, params: Params) -> object:  # noqa: ARG002
        return {"aborted": self._stop_job()}

    async def _approve(self, params: ApproveParams) -> object:
        if self._job is not None:
            self._desk.give(params.call_id, params.decision)
        else:
            await self._agent().decide(params.call_id, params.decision)
        return {"call_id": params.call_id, "decision": params.decision}

    async def _get_context(self, params: ContextParams) -> object:
        return describe_context(self._session, self._book, full=params.full)

    async def _send_message(self, params: MessageParams) -> object:
        if not params.text.strip():
            raise JsonRpcFault(INVALID_PARAMS, "send_message: `text` is blank")
        self._agent().send_message(params.text, deliver=params.deliver)
        return {"running": self._job is not None}

    def _agent(self) -> AgentRunner:
        if not isinstance(self._runner, AgentRunner):
            raise JsonRpcFault(FAILED, "this session answers from notes: it runs no tools")
        return self._runner

    async def _shutdown(self, params: Params) -> object:  # noqa: ARG002
        return None

    async def _tree(self, params: Params) -> object:  # noqa: ARG002
        return describe_tree(self._session)


def _fault_of(error: LaminaError) -> JsonRpcFault:
    return JsonRpcFault(FAILED, str(error), data={"code": error.code})
