"""The laws of the planner's parts: what a shortened text says, who is in, and when the list of
tools may move."""

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.assembly.walks import page_on
from tests.fakes.book import SMALL
from tests.strategies import header, modest, thorough

from lamina.core.assembly.engine_tools import ENGINE_TOOLS
from lamina.core.assembly.inclusion import Inclusion, is_included, sort_by_include
from lamina.core.assembly.shortened_results import (
    NOTICE_TOKENS,
    READ_RESULT,
    shorten_results,
    shorten_text,
)
from lamina.core.assembly.tool_offer import Implementations, ToolPlan, plan_tools, settle_tools
from lamina.core.journal import State, initial_state
from lamina.core.values.agent import Guide
from lamina.core.values.entry import (
    ForgetEntry,
    IncludeEntry,
    Membership,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
)
from lamina.core.values.item import Include, ItemId, tool_id
from lamina.core.values.message import Block, Message, Text, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.patch import Patch, ToolsReplace
from lamina.core.values.request import Boundary, RequestContext
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool, Toolset
from lamina.core.values.usage import Usage

# -- shortened texts -----------------------------------------------------------------------------

GAP = "tokens removed to fit the context window ...]"


@thorough
@given(st.text("ab \n", max_size=400), st.integers(0, 300))
def test_a_shortened_text_keeps_both_ends_and_says_what_is_missing(text: str, limit: int) -> None:
    short = shorten_text(text, limit, len)
    if len(text) <= limit:
        assert short == text
        return
    head, gap, tail = short.partition(f"\n[... {len(text) - limit:,} {GAP}\n")
    assert gap
    assert text.startswith(head)
    assert text.endswith(tail)
    assert limit - 2 < len(head) + len(tail) <= limit
    assert abs(len(head) - len(tail)) <= 1


@modest
@given(st.integers(500, 900), st.integers(200, 400), st.integers(50, 150))
def test_a_text_shortened_twice_counts_all_that_is_missing(
    size: int, first: int, second: int
) -> None:
    once = shorten_text("x" * size, first, len)
    twice = shorten_text(once, second, len)
    assert twice.count(GAP) == 1
    assert f"[... {len(once) - second + size - first:,} {GAP}" in twice


@thorough
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=5),
    st.integers(0, 1_500),
)
def test_the_largest_results_are_shortened_and_each_of_them_is_reported(
    sizes: list[int], excess: int
) -> None:
    def count(text: str) -> int:
        return len(text.split())

    results = [
        ToolResult(call_id=f"c{number}", name="find", text=" ".join(["word"] * size))
        for number, size in enumerate(sizes)
    ]
    shortened, reports = shorten_results(results, excess, count)
    assert [each.call_id for each in shortened] == [each.call_id for each in results]
    changed = [old for new, old in zip(shortened, results, strict=True) if new.text != old.text]
    assert [f"result:{each.call_id}" for each in changed] == [each.what for each in reports]
    assert all(each.tokens > 0 and each.detail for each in reports)
    after = sum(count(each.text) for each in shortened)
    # Nothing is left of texts that had to go altogether but the line that says so.
    assert after <= max(sum(sizes) - excess, (NOTICE_TOKENS + 1) * len(sizes))
    whole = [size for size, new in zip(sizes, shortened, strict=True) if GAP not in new.text]
    cut = [size for size, new in zip(sizes, shortened, strict=True) if GAP in new.text]
    assert not whole or not cut or max(whole) <= min(cut)


# -- who is in -----------------------------------------------------------------------------------

NAMES = ("tone", "names", "tests", "gone")
memberships: st.SearchStrategy[Membership] = st.sampled_from(["manual", "removed"])
said = st.dictionaries(
    st.sampled_from([ItemId(f"rule:{name}") for name in NAMES]), memberships, max_size=4
)


@st.composite
def guides(draw: st.DrawFn) -> list[Guide]:
    names = draw(st.permutations(NAMES[:3]))
    return [
        Guide(
            kind="rule",
            name=name,
            text=name,
            include=draw(st.sampled_from(["always", "manual", "agent"])),
        )
        for name in names[: draw(st.integers(0, 3))]
    ]


@thorough
@given(guides(), said)
def test_what_a_person_took_out_stays_out_and_what_they_put_in_is_in(
    there: list[Guide], members: dict[ItemId, Membership]
) -> None:
    inclusion = sort_by_include(there, members, "rule")
    present = [guide.id for guide in inclusion.present]
    searched = [guide.id for guide in inclusion.agent]
    known = {guide.id: guide for guide in there}
    assert len({*present, *searched, *inclusion.missing}) == len(
        [*present, *searched, *inclusion.missing]
    )
    for item, membership in members.items():
        if membership == "removed":
            assert item not in (*present, *searched, *inclusion.missing)
        else:
            assert item in (present if item in known else inclusion.missing)
    for guide in there:
        assert is_included(guide.id, guide.include, members) == (guide.id in present)
        unmentioned = guide.id not in members
        assert (guide.id in searched) == (guide.include == "agent" and unmentioned)
    assert not set(inclusion.missing) & set(known)
    assert not sort_by_include(there, members, "tool").missing


@modest
@given(guides(), st.lists(st.sampled_from([ItemId(f"rule:{n}") for n in NAMES]), max_size=4))
def test_members_come_in_the_order_in_which_they_were_added(
    there: list[Guide], added: list[ItemId]
) -> None:
    page = page_on(initial_state(header()), 0.0)
    for item in added:
        page.write(IncludeEntry, item=item, membership="manual")
    latest_last = list(dict.fromkeys(reversed(added)))[::-1]
    known = {guide.id: guide for guide in there}
    inclusion = sort_by_include(there, page.state.library.members, "rule")
    assert [guide.id for guide in inclusion.manual] == [
        item for item in latest_last if item in known and known[item].include != "always"
    ]
    page.write(IncludeEntry, item=ItemId("rule:tone"), membership="default")
    assert ItemId("rule:tone") not in page.state.library.members


# -- the list of tools ---------------------------------------------------------------------------

TOOL_NAMES = ("a", "b", "c", "d", "e")
EXPIRED = Boundary(kind="expired", reason="the cache expired")


def offer(name: str, include: Include = "always", description: str = "") -> OfferedTool:
    definition = ToolDefinition(name=name, description=description)
    return OfferedTool(
        id=tool_id("s", name), definition=definition, digest=description, include=include
    )


def inclusion_of(tools: Sequence[OfferedTool], *removed: ItemId) -> Inclusion[OfferedTool]:
    return sort_by_include(tools, dict.fromkeys(removed, "removed"), "tool")


def apply(state: State, plan: ToolPlan, *, sent: bool, calls: Sequence[str] = ()) -> State:
    """The state with the plan's list and, if `sent`, after a request and an answer."""
    page = page_on(state, 0.0)
    if plan.definitions is not None:
        op = ToolsReplace(tools=plan.definitions, reason=plan.reason)
        page.transform(plan.transformer, Patch(ops=(op,)))
    for item in plan.forget:
        page.write(ForgetEntry, item=item)
    if sent:
        text = Text("Q")
        page.write(MessageEntry, message=Message(role="user", blocks=(text,), id=page.next_id()))
        request = page.write(
            RequestEntry, target=SMALL.name, context=RequestContext(target=SMALL.name), before="",
            base=None, kept=0, digests=(), cached_run=0, tokens=10, cached_tokens=0,
        )  # fmt: skip
        blocks: list[Block] = [text]
        if calls:
            blocks = [ToolCall(id=f"{page.next_id()}{name}", name=name) for name in calls]
        page.write(
            MessageEntry,
            message=Message(role="assistant", blocks=tuple(blocks), id=page.next_id()),
        )
        page.write(ReplyEntry, request=request.id, usage=Usage(), stop="end")
        if calls:
            results = [
                ToolResult(call_id=block.id, name=block.name, text="")
                for block in blocks
                if isinstance(block, ToolCall)
            ]
            page.write(
                MessageEntry, message=Message(role="tool", blocks=tuple(results), id=page.next_id())
            )
    return page.state


@st.composite
def offers(draw: st.DrawFn) -> list[OfferedTool]:
    names = draw(st.lists(st.sampled_from(TOOL_NAMES), unique=True, max_size=5))
    return [
        offer(
            name,
            draw(st.sampled_from(["always", "agent", "agent"])),
            draw(st.sampled_from(["", "", "changed"])),
        )
        for name in names
    ]


def chosen_of(tools: Sequence[OfferedTool], count: int) -> list[SelectedItem]:
    return [SelectedItem(item=tool.id) for tool in tools if tool.include == "agent"][:count]


policies = st.sampled_from(["sticky", "sticky", "exact", "all"])
joins = st.sampled_from([None, 0, 0, 1, 4])
_rest = st.tuples(st.integers(0, 3), st.booleans(), st.sets(st.sampled_from(TOOL_NAMES)))


@st.composite
def round_lists(draw: st.DrawFn) -> list[tuple[list[OfferedTool], int, bool, set[str]]]:
    """Requests one after the other; in half of the cases over tools that stay as they are."""
    steady = draw(st.none() | offers())
    return [
        (draw(offers()) if steady is None else steady, *draw(_rest))
        for _ in range(draw(st.integers(1, 4)))
    ]


rounds = round_lists()
# Two tools that nobody asked for at first, then one after the other.
_TOOLS = [offer("a"), offer("b", "agent"), offer("c", "agent")]
WANTED_LATE: list[tuple[list[OfferedTool], int, bool, set[str]]] = [
    (_TOOLS, count, False, set()) for count in (0, 1, 2)
]


class _Round:
    """One request: what could be called, what was chosen, and the plan for its list."""

    def __init__(
        self, state: State, tools: list[OfferedTool], count: int, boundary: bool, most: int
    ) -> None:
        self.state = state
        self.tools = tools
        self.chosen = chosen_of(tools, count)
        self.boundary = EXPIRED if boundary else None
        self.target = replace(SMALL, max_tools=most)
        self.plan = plan_tools(state, self.target, inclusion_of(tools), self.chosen, self.boundary)

    @property
    def before(self) -> list[str]:
        return [tool.name for tool in self.state.envelope.tools]

    @property
    def after(self) -> list[str]:
        if self.plan.definitions is None:
            return self.before
        return [tool.name for tool in self.plan.definitions]


def play(
    drawn: list[tuple[list[OfferedTool], int, bool, set[str]]],
    policy: str,
    joins: int | None,
    most: int = 0,
) -> list[_Round]:
    settings = Settings(tool_policy=policy, tool_joins=joins)  # type: ignore[arg-type]
    state = initial_state(header(settings=settings))
    played = []
    for tools, count, boundary, calls in drawn:
        played.append(
            _Round(state, tools, count, boundary and state.requests.sent is not None, most)
        )
        listed = set(played[-1].after) & calls
        state = apply(state, played[-1].plan, sent=True, calls=sorted(listed))
    return played


@thorough
@given(rounds, policies, joins)
def test_a_list_that_changes_says_why_and_one_that_does_not_is_left_alone(
    drawn: list[tuple[list[OfferedTool], int, bool, set[str]]], policy: str, joins: int | None
) -> None:
    for each in play(drawn, policy, joins):
        assert (each.plan.definitions is None) == (each.plan.reason == "")
        assert each.plan.definitions != each.state.envelope.tools
        assert len(set(each.after)) == len(each.after)
        assert {tool.name for tool in each.plan.tools} <= set(each.after)
        # Planned once more on what was decided, nothing moves.
        settled = apply(each.state, each.plan, sent=False)
        again = plan_tools(settled, each.target, inclusion_of(each.tools), each.chosen, None)
        assert again.definitions is None


@thorough
@given(rounds, policies, joins)
@example(WANTED_LATE, "sticky", 0)
def test_every_tool_that_applies_is_listed_or_described(
    drawn: list[tuple[list[OfferedTool], int, bool, set[str]]], policy: str, joins: int | None
) -> None:
    for each in play(drawn, policy, joins):
        described = {attachment.item.id for attachment in each.plan.described}
        chosen = {selected.item for selected in each.chosen}
        for tool in each.tools:
            name = tool.definition.name
            listed = name in each.after
            if tool.include == "always":
                assert listed
            elif tool.id in chosen:
                assert listed != (tool.id in described)
            if listed and each.plan.definitions is not None:
                assert tool.definition in each.plan.definitions
        assert described <= chosen


@thorough
@given(rounds, joins)
def test_a_sticky_list_moves_only_for_a_cause(
    drawn: list[tuple[list[OfferedTool], int, bool, set[str]]], joins: int | None
) -> None:
    for each in play(drawn, "sticky", joins):
        known = {tool.definition.name: tool for tool in each.tools}
        always = {name for name, tool in known.items() if tool.include == "always"}
        standing = {tool.name: tool for tool in each.state.envelope.tools}
        new_always = always - set(standing)
        changed = [n for n in standing if n in known and known[n].definition != standing[n]]
        may_join = joins is None or each.state.tool_joins < joins
        cause = each.state.requests.sent is None or each.boundary or new_always or changed
        if not cause and not (may_join and each.chosen) and not {*ENGINE_TOOLS} <= {*known}:
            assert each.plan.definitions is None
        # Those that stay keep their order; what is new comes behind them, `use_tool` in front.
        stays = [name for name in each.before if name in each.after]
        assert [name for name in each.after if name in each.before] == stays
        fresh = [
            name for name in each.after if name not in each.before and name not in ENGINE_TOOLS
        ]
        assert not fresh or each.after[-len(fresh) :] == fresh
        if cause is None or not (each.boundary or new_always or changed):
            gone = [name for name in each.before if name not in each.after]
            assert not gone or each.state.requests.sent is None or (may_join and each.chosen)


@thorough
@given(rounds, policies, joins, st.integers(1, 4))
def test_a_provider_gets_no_more_tools_than_it_takes_and_who_is_out_is_told(
    drawn: list[tuple[list[OfferedTool], int, bool, set[str]]],
    policy: str,
    joins: int | None,
    most: int,
) -> None:
    for each in play(drawn, policy, joins, most):
        if each.plan.definitions is None:
            continue
        assert len(each.after) <= most
        described = {attachment.item.id for attachment in each.plan.described}
        for tool in each.tools:
            if tool.include == "always" and tool.definition.name not in each.after:
                assert any(tool.definition.name in warning for warning in each.plan.warnings)
                assert tool.id not in described
        for selected in each.chosen:
            listed = {tool.item for tool in each.plan.tools}
            assert selected.item in listed | described


@thorough
@given(offers(), st.sets(st.sampled_from(TOOL_NAMES), min_size=1))
def test_what_a_person_took_out_is_barred_where_that_can_be_said_and_leaves_elsewhere(
    tools: list[OfferedTool], out: set[str]
) -> None:
    everything = [replace(tool, include="always") for tool in tools]
    state = initial_state(header(settings=Settings()))
    state = apply(state, plan_tools(state, SMALL, inclusion_of(everything), (), None), sent=True)
    removed = [tool for tool in everything if tool.definition.name in out]
    for restricts in (True, False):
        target = replace(SMALL, restricts_tools=restricts)
        page = page_on(state, 0.0)
        for tool in removed:
            page.write(IncludeEntry, item=tool.id, membership="removed")
        here = Implementations(toolset=Toolset(tools=tuple(everything)))
        withdrawal = settle_tools(page, target, here)
        envelope = page.state.envelope
        left = tuple(tool.definition for tool in everything if tool not in removed)
        left = (READ_RESULT, *left) if left else ()
        assert envelope.tools == left
        assert envelope.tool_list == (state.envelope.tools if restricts else left)
        assert [omission.what for omission in withdrawal.left_out] == [t.id for t in removed]
        # What is settled stays so.
        entries = len(page.written)
        settle_tools(page, target, here)
        assert len(page.written) == entries
