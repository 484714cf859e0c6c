/** A running turn, built from its events. Pure: the same events give the same view, whether they arrive one by
 * one, after a reload, or all at once. */

import type { Shapes } from "./types";

export interface LiveCall {
  id: string;
  name: string;
  label: string;
  arguments: string;
  state: "written" | "running" | "done" | "error" | "waiting" | "denied";
  result: string;
  seconds: number | null;
}

export type LivePart =
  | { kind: "thinking"; index: number; text: string; open: boolean }
  | { kind: "text"; index: number; text: string; open: boolean };

/** One request and its result. */
export interface LiveStep {
  request: string;
  target: string;
  tokens: number;
  parts: LivePart[];
  calls: LiveCall[];
  usage: Shapes["Usage"] | null;
  verdict: Shapes["CacheVerdict"] | null;
  cost: number | null;
  first_s: number | null;
  total_s: number | null;
}

export interface LiveTurn {
  steps: LiveStep[];
  /** The current activity, in words for the line below the answer. */
  phase: string;
  reading: { done: number; total: number; cached: number } | null;
  context: Shapes["RequestContext"] | null;
  layers: readonly Shapes["LayerSize"][];
  warnings: string[];
  displays: { hook: string; title: string; text: string }[];
  compaction: Shapes["CompactionDone"] | null;
  ending: string | null;
  answer: string;
  failed: { code: string; message: string } | null;
}

export function begin(): LiveTurn {
  return {
    steps: [],
    phase: "preparing",
    reading: null,
    context: null,
    layers: [],
    warnings: [],
    displays: [],
    compaction: null,
    ending: null,
    answer: "",
    failed: null,
  };
}

type Raw = { type: string } & Record<string, unknown>;

/** Applies one event; changes `turn` in place, since hundreds arrive per second. */
export function apply(turn: LiveTurn, event: Raw): void {
  const act = ACTS[event.type];
  if (act) act(turn, event);
}

function step(turn: LiveTurn): LiveStep {
  let last = turn.steps.at(-1);
  if (!last) {
    last = newStep("", "", 0);
    turn.steps.push(last);
  }
  return last;
}

function newStep(request: string, target: string, tokens: number): LiveStep {
  return {
    request,
    target,
    tokens,
    parts: [],
    calls: [],
    usage: null,
    verdict: null,
    cost: null,
    first_s: null,
    total_s: null,
  };
}

function findCall(turn: LiveTurn, id: string): LiveCall | undefined {
  for (const one of turn.steps.toReversed()) {
    const call = one.calls.find((known) => known.id === id);
    if (call) return call;
  }
  return undefined;
}

function takeCall(turn: LiveTurn, call: Shapes["ToolCall"], label: string, state: LiveCall["state"]): void {
  const known = findCall(turn, call.id);
  if (known) {
    known.state = state;
    known.label = label || known.label;
    return;
  }
  const current = step(turn);
  // This call is the one being written: the first of its name without an id.
  const written = current.calls.find((one) => one.state === "written" && one.name === call.name);
  const taken: LiveCall = {
    id: call.id,
    name: call.name,
    label,
    arguments: call.arguments,
    state,
    result: "",
    seconds: null,
  };
  if (written) Object.assign(written, taken);
  else current.calls.push(taken);
}

const ACTS: Record<string, (turn: LiveTurn, event: Raw) => void> = {
  request(turn, event) {
    const { request, target, context, layers } = event as unknown as Shapes["RequestStarted"];
    const tokens = layers.reduce((sum, layer) => sum + layer.tokens, 0);
    turn.steps.push(newStep(request, target, tokens));
    turn.context = context;
    turn.layers = layers;
    turn.phase = "waiting for the model";
    turn.reading = null;
  },
  display(turn, event) {
    const { hook, display } = event as unknown as Shapes["HookShown"];
    turn.displays.push({ hook, title: display.title || hook, text: display.markdown || display.summary || "" });
  },
  reading(turn, event) {
    const { done, total, cached } = event as unknown as Shapes["PromptProgress"];
    turn.reading = { done, total, cached: cached ?? 0 };
    turn.phase = "reading the prompt";
  },
  block_start(turn, event) {
    const { index, kind, name } = event as unknown as Shapes["BlockStarted"];
    turn.reading = null;
    if (kind === "action") {
      step(turn).calls.push({
        id: `written-${index}`,
        name: name ?? "",
        label: "",
        arguments: "",
        state: "written",
        result: "",
        seconds: null,
      });
      turn.phase = `writing a call to ${name || "a tool"}`;
    } else {
      step(turn).parts.push({ kind, index, text: "", open: true });
      turn.phase = kind === "thinking" ? "thinking" : "answering";
    }
  },
  block_delta(turn, event) {
    const { index, text } = event as unknown as Shapes["BlockDelta"];
    const current = step(turn);
    const part = current.parts.findLast((one) => one.index === index);
    if (part) {
      part.text += text;
      return;
    }
    const call = current.calls.find((one) => one.id === `written-${index}`);
    if (call) call.arguments += text;
  },
  block_end(turn, event) {
    const part = step(turn).parts.findLast((one) => one.index === event.index);
    if (part) part.open = false;
  },
  answer_held(turn, event) {
    const { hooks } = event as unknown as Shapes["AnswerHeld"];
    turn.phase = `held for ${hooks.join(", ")}`;
  },
  answer_changed(turn, event) {
    const { text } = event as unknown as Shapes["AnswerChanged"];
    const current = step(turn);
    current.parts = current.parts.filter((part) => part.kind !== "text");
    current.parts.push({ kind: "text", index: -1, text, open: false });
  },
  tool_call(turn, event) {
    const { call, label } = event as unknown as Shapes["ToolStarted"];
    takeCall(turn, call, label ?? "", "running");
    turn.phase = `${label || call.name} runs`;
  },
  tool_result(turn, event) {
    const { result, seconds } = event as unknown as Shapes["ToolFinished"];
    const call = findCall(turn, result.call_id);
    if (call) {
      if (call.state !== "denied") call.state = result.is_error ? "error" : "done";
      call.result = result.text;
      call.seconds = seconds ?? 0;
    }
    turn.phase = "waiting for the model";
  },
  approval(turn, event) {
    const { call, tool } = event as unknown as Shapes["ApprovalWanted"];
    takeCall(turn, call, tool.label ?? "", "waiting");
    turn.phase = "waiting for you";
  },
  decision(turn, event) {
    const { call_id, decision } = event as unknown as Shapes["ApprovalDecided"];
    const call = findCall(turn, call_id);
    if (call) call.state = decision === "deny" ? "denied" : "running";
  },
  usage(turn, event) {
    const report = event as unknown as Shapes["UsageReported"];
    const one = turn.steps.findLast((known) => known.request === report.request) ?? step(turn);
    one.usage = report.usage;
    one.verdict = report.verdict ?? null;
    one.cost = report.cost ?? null;
    one.first_s = report.first_s ?? null;
    one.total_s = report.total_s ?? null;
  },
  warning(turn, event) {
    turn.warnings.push(String(event.text));
  },
  summary(turn, event) {
    const { step: at, of } = event as unknown as Shapes["SummaryStep"];
    turn.phase = `summarising history, ${at} of ${of}`;
  },
  retry(turn, event) {
    // Discard its streamed text.
    turn.steps.pop();
    turn.phase = `sent again, shortened: ${String(event.reason)}`;
  },
  compaction(turn, event) {
    turn.compaction = event as unknown as Shapes["CompactionDone"];
  },
  end(turn, event) {
    const { ending, answer } = event as unknown as Shapes["TurnEnded"];
    turn.ending = ending;
    turn.answer = answer;
    turn.phase = "";
    close(turn);
  },
  failed(turn, event) {
    turn.failed = { code: String(event.code), message: String(event.message) };
    turn.phase = "";
    close(turn);
  },
};

function close(turn: LiveTurn): void {
  turn.reading = null;
  for (const one of turn.steps) for (const part of one.parts) part.open = false;
}

/** The status line at the end of a turn. */
export function closingWords(turn: LiveTurn): string {
  if (turn.failed) return `failed: ${turn.failed.message}`;
  if (turn.compaction) return turn.compaction.changed ? "history is summarised" : "nothing to summarise";
  if (turn.ending === "waiting") return "waiting for you";
  if (turn.ending === "aborted") return "stopped";
  if (turn.ending === "limit") return "stopped after many requests; resume to continue";
  const words = turn.answer.split(/\s+/).filter(Boolean).length;
  return `done, ${words} ${words === 1 ? "word" : "words"}`;
}
