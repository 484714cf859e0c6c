"""`lamina rpc`: a session for programs in any language. docs/rpc.md describes the protocol.

Laws: standard output carries only JSON-RPC. One turn runs at a time; calls that are allowed during
a turn (decide, abort, send_message, queries) are served while it runs, in the order they came. The
end of the input ends everything, and a partial answer is kept.
"""

import sys
import traceback
from collections.abc import AsyncIterator

import anyio
import msgspec
import typer
from anyio.abc import TaskGroup
from rich.console import Console

from lamina import __version__
from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import (
    AllowTools,
    PromptFlags,
    SessionFlags,
    expand_flags,
)
from lamina.apps.cli.outcome import run_to_exit
from lamina.apps.cli.rpc.jsonrpc import (
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
from lamina.apps.cli.rpc.methods import METHODS, RpcMethods
from lamina.apps.cli.stdio import open_input, own_descriptors, stop_on_signals
from lamina.apps.views.approvers import AllowAllApprover, PendingApprovals
from lamina.apps.views.background_fill import FillPause, filling
from lamina.apps.views.session_opener import Notices, open_runner, require_extras
from lamina.apps.views.session_options import PromptOptions, SessionOptions
from lamina.apps.views.turn_gate import TurnGate
from lamina.core.ports import TargetBook
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.task_groups import single_errors
from lamina.errors import LaminaError, TurnStateError

app = typer.Typer()


async def serve(
    options: SessionOptions, prompt: PromptOptions, *, allow_tools: bool = False
) -> int:
    """Serve until the input ends or a signal arrives; return the exit code."""
    require_extras(options, prompt)
    notices = ConsoleNotices(Console(stderr=True, soft_wrap=True, highlight=False, markup=False))
    approvals = PendingApprovals()
    approver = AllowAllApprover() if allow_tools else approvals
    with own_descriptors() as (source, sink):
        async with stop_on_signals() as stop:
            runner = await open_runner(options, notices, approver=approver)
            async with runner:
                server = RpcServer(runner, approvals, sink, prompt=prompt, notices=notices)
                stop.abort = server.stop
                async with open_input(source) as chunks:
                    await server.run(split_lines(chunks))
    return stop.exit_code


class RpcServer:
    """One session and its client."""

    def __init__(
        self,
        runner: ChatRunner,
        approvals: PendingApprovals,
        sink: int,
        *,
        prompt: PromptOptions,
        notices: Notices,
        book: TargetBook | None = None,
    ) -> None:
        self._session = runner.session
        self._approvals = approvals
        self._pause = FillPause()
        self._gate = TurnGate(runner, self._pause)
        self._peer = JsonRpcPeer(sink, self._lose_peer)
        self._methods = RpcMethods(
            runner, approvals, self._gate, self._peer,
            prompt=prompt, notices=notices, book=book or load_book(),
        )  # fmt: skip
        self._reading = anyio.CancelScope()
        self._group: TaskGroup | None = None
        self._closing: JsonRpcCall | None = None

    async def run(self, lines: AsyncIterator[bytes | OverlongLine]) -> None:
        """Serve the calls in the input until it ends, then stop the running work."""
        await self._peer.notify("ready", self._introduction())
        with single_errors():
            filled = filling(self._session.searcher, pause=self._pause)
            async with filled, anyio.create_task_group() as self._group:
                with self._reading:
                    async for line in lines:
                        if isinstance(line, OverlongLine) or line.strip():
                            await self._take(line)
                        if self._closing:
                            break
                self._gate.abort()
        if self._closing:
            await self._peer.answer(self._closing, None)

    def stop(self) -> bool:
        """Stop serving, as at the end of the input."""
        self._reading.cancel()
        return True

    def _lose_peer(self) -> None:
        self._reading.cancel()
        self._gate.abort()

    def _introduction(self) -> dict[str, object]:
        return {
            "session": self._session.id,
            "target": self._session.target().name,
            "version": __version__,
            "interrupted": self._session.interrupted,
            "waiting": msgspec.to_builtins(self._session.pending_calls),
        }

    # -- calls -----------------------------------------------------------------------------------

    async def _take(self, line: bytes | OverlongLine) -> None:
        try:
            call = read_call(line)
        except JsonRpcFault as fault:
            await self._peer.refuse(fault)
            return
        method = METHODS.get(call.method)
        if method is None:
            names = ", ".join(sorted(METHODS))
            problem = f"no method {call.method!r}; known methods: {names}"
            await self._fail(call, JsonRpcFault(UNKNOWN_METHOD, problem))
            return
        try:
            params: object = msgspec.convert(call.params, method.params)
            if method.when != "always":
                self._gate.require_idle()
        except msgspec.ValidationError as error:
            await self._fail(call, JsonRpcFault(INVALID_PARAMS, f"{call.method}: {error}"))
        except TurnStateError as error:
            await self._fail(call, _fault_of(error))
        else:
            await self._begin(call, params)

    async def _begin(self, call: JsonRpcCall, params: object) -> None:
        if call.method == "shutdown":
            self._closing = call
        elif METHODS[call.method].when == "job":
            assert self._group is not None
            self._group.start_soon(self._work, call, params, self._gate.begin())
        else:
            await self._do(call, params)

    async def _work(self, call: JsonRpcCall, params: object, scope: anyio.CancelScope) -> None:
        with scope:
            await self._do(call, params)
        if scope.cancelled_caught:
            self._end_job()
            fault = JsonRpcFault(FAILED, "stopped before it started", data={"code": "aborted"})
            await self._fail(call, fault)

    async def _do(self, call: JsonRpcCall, params: object) -> None:
        fault: JsonRpcFault | None = None
        result: object = None
        try:
            result = await getattr(self._methods, call.method)(params)
        except JsonRpcFault as error:
            fault = error
        except LaminaError as error:
            fault = _fault_of(error)
        except Exception as error:  # noqa: BLE001
            # Whatever the error, the client waits for an answer; standard error has the details.
            traceback.print_exc(file=sys.stderr)
            fault = JsonRpcFault(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        if METHODS[call.method].when == "job":
            # Before the answer: its reader may send the next call at once.
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
        self._gate.end()
        self._approvals.clear()


def _fault_of(error: LaminaError) -> JsonRpcFault:
    return JsonRpcFault(FAILED, str(error), data={"code": error.code})


@app.command()
@expand_flags
def rpc(*, prompt: PromptFlags, opening: SessionFlags, allow_tools: AllowTools = False) -> None:
    """Serve one session over JSON-RPC 2.0: one message per line on standard input and output.

    For programs in any language; docs/rpc.md describes the methods. --attach and --essential apply
    to every prompt. It ends with standard input; a partial answer is kept.
    """
    run_to_exit(serve, opening.options(), prompt.options(), allow_tools=allow_tools)
