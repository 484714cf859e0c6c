"""The methods of `lamina rpc`: what each one takes, and when it may be called."""

from typing import Literal

from msgspec import Struct

from lamina.core.values.tool import Decision
from lamina.engine.runners.runner import Delivery


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a method that takes none."""


class PromptParams(Params, frozen=True, kw_only=True):
    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class EditParams(Params, frozen=True, kw_only=True):
    """Without `attach` and `essential`, what was attached to the question goes along again."""

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
    """A message that asks nothing; people are shown it unless `shown` is off."""

    text: str
    role: Literal["user", "assistant"] = "user"
    custom_type: str = ""
    shown: bool = True


class ItemParams(Params, frozen=True, kw_only=True):
    """`what` is the path of a pin; or of a member rule:NAME, ref:NAME or tool:SERVER/NAME."""

    what: str


class ResultParams(Params, frozen=True, kw_only=True):
    """`what` is the id of a call, or a digest."""

    what: str


class RpcMethod(Struct, frozen=True):
    """A `job` is a turn of its own; an `idle` method waits for none, but refuses to disturb one."""

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
