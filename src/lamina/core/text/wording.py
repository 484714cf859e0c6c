"""Defines our sentences that a model reads and that change with the renderer.

Laws: the words of a renderer never change. A session keeps its renderer until its cache is lost
anyway, so that better words move nobody's prefix. Text that the journal stores verbatim, such as a
tool's answer, is never reworded and needs no row here.
"""

from msgspec import Struct


class Wording(Struct, frozen=True, kw_only=True):
    """The sentences of one renderer. Names in braces are filled in."""

    # Definitions of the engine's tools.
    use_tool_name: str
    use_tool_arguments: str
    find_tools: str
    find_tools_query: str
    # Sentences in messages and the system prompt.
    rules: str
    unseen_picture: str
    unseen_pictures: str
    use_loaded: str
    # Outcomes of calls.
    use_tool_wrong: str
    call_cut_short: str
    call_superseded: str
    calls_over: str
    call_unapproved: str
    # The planning call.
    planner: str
    planned_already: str
    plan_again: str
    # The request for a summary.
    summary_task: str
    summary_scope: str
    summary_scope_unknown: str
    summary_turn: str
    summary_earlier: str
    summary_length: str
    summary_before: str
    summary_whole: str
    # A summary without a model.
    earlier_summary: str
    goal_in_earlier: str
    went_on: str


_FIRST = Wording(
    use_tool_name="The tool's name, as it is described.",
    use_tool_arguments="Its arguments, as it wants them.",
    find_tools=(
        "Looks for tools that are not in this list: there are more. Brings up to {most} "
        "that fit the query and were not there yet; its result says how they are called. Search "
        "for one thing at a time, and before you say that something cannot be done."
    ),
    find_tools_query="What a tool has to do, in a few words.",
    rules=(
        "Rules and references apply only while the latest list of those in force names them; "
        "those it does not name do not apply."
    ),
    unseen_picture="(It has 1{more} picture, which is not shown.)",
    unseen_pictures="(It has {count:,}{more} pictures, which are not shown.)",
    use_loaded="They are called through use_tool:",
    use_tool_wrong="use_tool needs 'name', a text, and 'arguments', an object.",
    call_cut_short="The call was stopped while it ran; what it did until then may stand.",
    call_superseded="The call was not run: the person said something else instead.",
    calls_over=(
        "The call was not run: the tools of this question are done; answer with what they gave."
    ),
    call_unapproved=(
        "Tool call denied: it needs a person's word, and nobody can be asked while a plan is run."
    ),
    planner="""\
You plan how a question is answered; you do not answer it. Call the tools whose results are needed \
to answer it, all of them at once: you will not see what they give, and there is no second round. \
So do not call a tool whose arguments depend on the result of another. Call at most {most}. \
Call none if the question can be answered from what it says and from what is attached to it.
Of what is attached you see only titles, paths and first words; whoever answers sees all of it. \
What you write besides calls is read by nobody.""",
    planned_already="[These are planned; do not repeat them:]",
    plan_again="[Make only the wrong calls again, with arguments that fit, or leave them out.]",
    summary_task="""\
Write a summary of the conversation above. It will take the place of the messages it covers:
whoever goes on sees the summary and what stays, and nothing else. Do not answer any question
above, do not go on with the work and do not call tools.""",
    summary_scope="""\
The message that begins as follows, and all behind it, stays word for word.
Summarise only what stands before it.
> {line}""",
    summary_scope_unknown=(
        "The latest messages stay word for word. Summarise only what stands before them."
    ),
    summary_turn="""\
## Turn in progress
The cut goes through a turn whose later steps stay. Add this part for it: what was asked, what was
done for it so far, and what the later steps build on.""",
    summary_earlier="""\
An earlier summary stands among the messages. The messages it was made from are gone: carry over
everything in it that still holds, and move what was finished since to Done.""",
    summary_length="""\
Write at most {words:,} words ({tokens:,} tokens). Keep names, paths, numbers and error messages
exactly as they are. Answer with the summary alone.""",
    summary_before="""\
A summary of what stands before this part:

{summary}""",
    summary_whole="""\
Write one summary of both, the parts before and this one: carry over everything of the summary
that still holds, and move what was finished since to Done.""",
    earlier_summary="An earlier summary, of what went before:",
    goal_in_earlier="As the earlier summary says, under Critical Context.",
    went_on="Went on.",
)
_THIRD = Wording(
    use_tool_name="The tool's name, as given in its description.",
    use_tool_arguments="The tool's arguments, as its description specifies.",
    find_tools=(
        "Searches for tools that are not in this list. Returns up to {most} new tools that match "
        "the query, and says how to call them. Search for one thing at a time, and always search "
        "before you say that something cannot be done."
    ),
    find_tools_query="What the tool should do, in a few words.",
    rules=(
        "Rules and references apply only while the latest list of those in force names them. "
        "Ignore any that it does not name."
    ),
    unseen_picture="(1{more} picture is not shown.)",
    unseen_pictures="({count:,}{more} pictures are not shown.)",
    use_loaded="Call these tools through use_tool:",
    use_tool_wrong="use_tool requires 'name' (a string) and 'arguments' (an object).",
    call_cut_short="The call was stopped while it ran; it may already have had effects.",
    call_superseded="The call was not run: the user sent another message instead.",
    calls_over=(
        "The call was not run: no more tools can be called for this question. Answer with the "
        "results you have."
    ),
    call_unapproved=(
        "Tool call denied: it requires the user's approval, and the user cannot be asked while a "
        "plan runs."
    ),
    planner="""\
You plan how a question is answered; you do not answer it. Call the tools whose results are needed \
to answer it, all at once: you will not see their results, and there is no second round. So do not \
call a tool whose arguments depend on another tool's result. Make at most {most} calls. Make none \
if the question can be answered from its own text and the attachments.
Of the attachments you see only titles, paths and first words; the model that answers sees all of \
them. Anything you write besides calls is discarded.""",
    planned_already="[These calls are already planned; do not repeat them:]",
    plan_again="[Repeat only the invalid calls, with valid arguments, or leave them out.]",
    summary_task="""\
Write a summary of the conversation above. It will replace the messages it covers: whoever
continues will see only the summary and the messages that remain. Do not answer any question
above, do not continue the work and do not call tools.""",
    summary_scope="""\
The message that begins as follows, and everything after it, will remain word for word.
Summarise only what comes before it.
> {line}""",
    summary_scope_unknown=(
        "The latest messages will remain word for word. Summarise only what comes before them."
    ),
    summary_turn="""\
## Turn in progress
The cut falls inside a turn whose later steps will remain. Add this section for it: what was asked,
what has been done for it so far, and what the later steps depend on.""",
    summary_earlier="""\
One of the messages is an earlier summary. The messages it covers are gone: carry over everything
in it that still applies, and move what has been finished since to Done.""",
    summary_length="""\
Write at most {words:,} words ({tokens:,} tokens). Keep names, paths, numbers and error messages
exactly as they are. Reply with the summary only.""",
    summary_before="""\
A summary of everything before this part:

{summary}""",
    summary_whole="""\
Write one summary of this part and everything before it: carry over everything in the summary that
still applies, and move what has been finished since to Done.""",
    earlier_summary="The earlier summary:",
    goal_in_earlier="See the earlier summary under Critical Context.",
    went_on="Continued.",
)
# The second renderer has another order, with the words of the first.
_WORDINGS = {1: _FIRST, 2: _FIRST, 3: _THIRD}


def wording(renderer: int) -> Wording:
    """Return the sentences of a renderer."""
    return _WORDINGS[renderer]
