"""The methods of `lamina rpc`: their parameters, when they may be called, and what they do. Each is
a coroutine of the same name.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.cli.context import context_markdown
from lamina.apps.cli.rpc.jsonrpc import FAILED, INVALID_PARAMS, JsonRpcFault, JsonRpcPeer
from lamina.apps.cli.session_tree import describe_tree
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.answer_json import describe_context, describe_outcome
from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.session_items import ItemOverview, change_row
from lamina.apps.views.session_opener import Notices, ensure_target
from lamina.apps.views.session_options import PromptOptions
from lamina.apps.views.settings_by_name import describe_settings, read_settings
from lamina.apps.views.turn_gate import TurnGate
from lamina.core.journal import open_patch
from lamina.core.ports import TargetBook
from lamina.core.values.event import ApprovalWanted, Event, ToolFinished
from lamina.core.values.item import AttachmentSpec
from lamina.core.values.tool import Decision
from lamina.engine.runners.runner import AgentRunner, ChatRunner, Delivery
from lamina.errors import InvalidSetting, UsageError


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all parameters; also for methods without any."""


class PromptParams(Params, frozen=True, kw_only=True):
    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class EditParams(Params, frozen=True, kw_only=True):
    """Without `attach` and `essential`, the question's earlier attachments are sent again."""

    question: str
    text: str
    attach: tuple[str, ...] | None = None
    essential: tuple[str, ...] | None = None
    target: str | None = None


class RegenerateParams(Params, frozen=True, kw_only=True):
    answer: str | None = None
    target: str | None = None


class ResumeParams(Params, frozen=True, kw_only=True):
    target: str | None = None


class ContextParams(Params, frozen=True, kw_only=True):
    full: bool = False


class DecideParams(Params, frozen=True, kw_only=True):
    call_id: str
    decision: Decision


class NavigateParams(Params, frozen=True, kw_only=True):
    entry: str
    summary: str = ""


class MessageParams(Params, frozen=True, kw_only=True):
    text: str
    deliver: Delivery = "steer"


class AddMessageParams(Params, frozen=True, kw_only=True):
    """A message that asks nothing; it is shown to people unless `shown` is off."""

    text: str
    role: Literal["user", "assistant"] = "user"
    custom_type: str = ""
    shown: bool = True


class ItemParams(Params, frozen=True, kw_only=True):
    """`what` is the path of a pin, or a member: rule:NAME, ref:NAME or tool:SERVER/NAME."""

    what: str


class ResultParams(Params, frozen=True, kw_only=True):
    """`what` is the id of a call, or a digest."""

    what: str


class RpcMethod(Struct, frozen=True):
    """A `job` is a turn; an `idle` method does not wait for a turn, but is refused during one."""

    params: type
    when: Literal["job", "idle", "always"] = "always"


METHODS = {
    "prompt": RpcMethod(PromptParams, "job"),
    "edit": RpcMethod(EditParams, "job"),
    "regenerate": RpcMethod(RegenerateParams, "job"),
    "resume": RpcMethod(ResumeParams, "job"),
    "compact": RpcMethod(Params, "job"),
    "navigate": RpcMethod(NavigateParams, "idle"),
    "pin": RpcMethod(ItemParams, "idle"),
    "unpin": RpcMethod(ItemParams, "idle"),
    "add": RpcMethod(ItemParams, "idle"),
    "remove": RpcMethod(ItemParams, "idle"),
    "adopt_agent": RpcMethod(Params, "idle"),
    "update_settings": RpcMethod(dict, "idle"),
    "add_message": RpcMethod(AddMessageParams, "idle"),
    "apply": RpcMethod(dict, "idle"),
    "abort": RpcMethod(Params),
    "decide": RpcMethod(DecideParams),
    "get_context": RpcMethod(ContextParams),
    "items": RpcMethod(Params),
    "read_result": RpcMethod(ResultParams),
    "send_message": RpcMethod(MessageParams),
    "settings": RpcMethod(Params),
    "shutdown": RpcMethod(Params),
    "spending": RpcMethod(Params),
    "tree": RpcMethod(Params),
}


# The maximum length of a description, in columns.
ABOUT = 60


class RpcMethods:
    """`prompt` is sent with every prompt."""

    def __init__(
        self,
        runner: ChatRunner,
        approvals: PendingApprovals,
        gate: TurnGate,
        peer: JsonRpcPeer,
        *,
        prompt: PromptOptions,
        notices: Notices,
        book: TargetBook,
    ) -> None:
        self._runner = runner
        self._session = runner.session
        self._approvals = approvals
        self._gate = gate
        self._peer = peer
        self._prompt = prompt
        self._notices = notices
        self._book = book
        self._items = ItemOverview(runner)

    # -- turns -----------------------------------------------------------------------------------

    async def prompt(self, params: PromptParams) -> object:
        if not params.text.strip():
            raise JsonRpcFault(INVALID_PARAMS, "prompt: `text` is blank")
        await ensure_target(self._session.target(params.target), self._notices)
        attach = self._attachments(params.attach, params.essential)
        answer = await self._runner.run(
            params.text, attach=attach, target=params.target, on_event=self._tell
        )
        return describe_outcome(answer, self._session)

    async def edit(self, params: EditParams) -> object:
        if not params.text.strip():
            raise JsonRpcFault(INVALID_PARAMS, "edit: `text` is blank")
        await ensure_target(self._session.target(params.target), self._notices)
        attach = None
        if params.attach is not None or params.essential is not None:
            attach = self._attachments(params.attach or (), params.essential or ())
        answer = await self._runner.edit(
            params.question, params.text,
            attach=attach, target=params.target, on_event=self._tell,
        )  # fmt: skip
        return describe_outcome(answer, self._session)

    async def regenerate(self, params: RegenerateParams) -> object:
        await ensure_target(self._session.target(params.target), self._notices)
        answer = await self._runner.regenerate(
            params.answer, target=params.target, on_event=self._tell
        )
        return describe_outcome(answer, self._session)

    def _attachments(
        self, attach: tuple[str, ...], essential: tuple[str, ...]
    ) -> list[str | AttachmentSpec]:
        """The attachments of a question: those of every prompt, and its own."""
        prompt = PromptOptions(
            attach=(*self._prompt.attach, *attach), essential=(*self._prompt.essential, *essential)
        )
        return prompt.attachments()

    async def resume(self, params: ResumeParams) -> object:
        if params.target is not None:
            await ensure_target(self._session.target(params.target), self._notices)
        answer = await self._runner.resume(target=params.target, on_event=self._tell)
        return describe_outcome(answer, self._session)

    async def _tell(self, event: Event) -> None:
        match event:
            case ApprovalWanted(call=call):
                self._approvals.announce(call.id)
            case ToolFinished(result=result):
                self._approvals.close(result.call_id)
            case _:
                pass
        await self._peer.notify("event", event)

    async def compact(self, _: Params) -> object:
        return msgspec.to_builtins(await self._session.compact())

    async def abort(self, _: Params) -> object:
        return {"aborted": self._gate.abort()}

    async def decide(self, params: DecideParams) -> object:
        if self._gate.is_busy:
            self._approvals.give(params.call_id, params.decision)
        else:
            await self._agent().decide(params.call_id, params.decision)
        return {"call_id": params.call_id, "decision": params.decision}

    async def send_message(self, params: MessageParams) -> object:
        if not params.text.strip():
            raise JsonRpcFault(INVALID_PARAMS, "send_message: `text` is blank")
        await self._runner.send_message(params.text, deliver=params.deliver)
        return {"running": self._gate.is_busy}

    async def add_message(self, params: AddMessageParams) -> object:
        await self._session.add_message(**asdict(params))
        return {"messages": len(self._session.envelope.cached)}

    async def apply(self, params: dict[str, Any]) -> object:
        plain = open_patch(params)
        transformer = (plain.transformer if plain else "") or "rpc"
        await self._session.apply(transformer, params)
        return {"transformer": transformer, "ops": len(plain.ops) if plain else 0}

    def _agent(self) -> AgentRunner:
        if not isinstance(self._runner, AgentRunner):
            raise JsonRpcFault(FAILED, "this session answers from notes and runs no tools")
        return self._runner

    # -- the session -----------------------------------------------------------------------------

    async def navigate(self, params: NavigateParams) -> object:
        return asdict(await self._session.navigate(params.entry, summary=params.summary))

    async def tree(self, _: Params) -> object:
        return describe_tree(self._session)

    async def get_context(self, params: ContextParams) -> object:
        report = describe_context(self._session, self._book, full=params.full)
        return report | {"markdown": context_markdown(self._session)}

    async def read_result(self, params: ResultParams) -> object:
        return {"text": await self._session.read_result(params.what)}

    async def settings(self, _: Params) -> object:
        return describe_settings(self._session.settings)

    async def spending(self, _: Params) -> object:
        return msgspec.to_builtins(await self._session.spending())

    async def update_settings(self, params: dict[str, Any]) -> object:
        try:
            changes = read_settings(params, self._session.settings)
        except InvalidSetting:
            raise
        except UsageError as error:
            raise JsonRpcFault(INVALID_PARAMS, f"update_settings: {error}") from error
        if changes:
            await self._session.update_settings(**changes)
        return await self.settings(Params())

    # -- items -----------------------------------------------------------------------------------

    async def pin(self, params: ItemParams) -> object:
        return {"changed": await self._session.pin(params.what)}

    async def unpin(self, params: ItemParams) -> object:
        return {"changed": await self._session.unpin(params.what)}

    async def items(self, _: Params) -> object:
        await self._look_up_items()
        return {
            "items": [asdict(item) for item in self._items.inside],
            "available": [
                asdict(item) | {"about": one_line(item.about, ABOUT)}
                for item in self._items.outside
            ],
            "changes": [asdict(change) for change in self._items.changes],
            "problems": list(self._items.problems),
        }

    async def adopt_agent(self, _: Params) -> object:
        changes = await self._session.adopt_agent()
        return {"changes": [asdict(change_row(change)) for change in changes]}

    async def add(self, params: ItemParams) -> object:
        await self._look_up_items()
        return {"changed": await self._session.add(params.what)}

    async def remove(self, params: ItemParams) -> object:
        await self._look_up_items()
        return {"changed": await self._session.remove(params.what)}

    async def _look_up_items(self) -> None:
        # During a turn its tools are known, and a slow server must not keep `abort` waiting.
        await self._items.look_up(tools=not self._gate.is_busy)
