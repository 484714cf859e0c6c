/** A request as runs of tokens to draw, and as rows of an outline.
 *
 * Law: every token is in one run; the runs of a request are as long as its segments together. */

import { exact } from "../../lib/numbers";
import type { GoneSegment, LayerId, LayerShare, SegmentRow, SegmentState } from "./types";

export interface Run {
  id: string;
  layer: LayerId;
  state: SegmentState;
  start: number;
  tokens: number;
  /** Its first segment. */
  segment: number;
}

/** Runs of one layer and one state in wire order. A provider reads a prefix, which may end within a segment: such
 * a segment becomes two runs. */
export function runsOf(segments: readonly SegmentRow[], cached: number | null, agree: number): Run[] {
  const runs: Run[] = [];
  for (const segment of segments) {
    const end = segment.start + segment.tokens;
    const read = clamp(cached ?? 0, segment.start, end);
    // A segment matches as a whole or not at all: its bytes are not compared here.
    const same = segment.state === "agrees" || end <= agree ? end : read;
    const rest = segment.state === "unknown" ? "unknown" : "new";
    add(runs, segment, "cached", segment.start, read);
    add(runs, segment, "agrees", read, Math.max(read, same));
    add(runs, segment, rest, Math.max(read, same), end);
  }
  return runs;
}

function add(runs: Run[], segment: SegmentRow, state: SegmentState, start: number, end: number): void {
  if (end <= start) return;
  const last = runs.at(-1);
  if (last && last.layer === segment.layer && last.state === state && last.start + last.tokens === start) {
    last.tokens += end - start;
    return;
  }
  const id = `${segment.layer}-${state}-${start}`;
  runs.push({ id, layer: segment.layer, state, start, tokens: end - start, segment: segment.index });
}

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}

/** A state in words, depending on whether a provider has answered and reported its cache. */
export function stateWords(state: SegmentState, reported: boolean, answered: boolean): string {
  if (state === "cached") return "cached";
  if (state === "unknown") return "unknown";
  if (state === "new") return "new";
  if (reported) return "matches, not read";
  return answered ? "matches, not reported" : "matches";
}

export const STATE_ABOUT: Record<SegmentState, string> = {
  cached: "The provider reported that it read this from its cache.",
  agrees: "The same bytes at the same place as in the previous request; not reported as read from a cache.",
  new: "Not at this place in the previous request: it had to be processed.",
  unknown: "The request that this one was compared with is lost.",
};

/** The space of the window: used, free, and reserved for the answer. Together they may exceed the window if the
 * sent tokens were underestimated. */
export interface Room {
  used: number;
  free: number;
  reserve: number;
  scale: number;
}

export function roomOf(tokens: number, window: number, reserve: number): Room | null {
  if (window <= 0) return null;
  return { used: tokens, free: Math.max(0, window - reserve - tokens), reserve, scale: Math.max(window, tokens + reserve) };
}

export type OutlineRow =
  | { kind: "layer"; id: string; layer: LayerShare; open: boolean }
  | { kind: "segment"; id: string; segment: SegmentRow; place: number; of: number }
  | { kind: "gone"; id: string; gone: GoneSegment; place: number; of: number }
  | { kind: "gone-head"; id: string; count: number; tokens: number; open: boolean };

/** The outline: layers in wire order, each with its segments while it is open; last, removed segments. */
export function outlineOf(
  layers: readonly LayerShare[],
  segments: readonly SegmentRow[],
  gone: readonly GoneSegment[],
  closed: ReadonlySet<string>,
): OutlineRow[] {
  const rows: OutlineRow[] = [];
  for (const layer of layers) {
    const own = segments.filter((segment) => segment.layer === layer.layer);
    if (!own.length) continue;
    const open = !closed.has(layer.layer);
    rows.push({ kind: "layer", id: layer.layer, layer, open });
    if (!open) continue;
    for (const [place, segment] of own.entries()) {
      rows.push({ kind: "segment", id: `s${segment.index}`, segment, place, of: own.length });
    }
  }
  if (gone.length) {
    const open = !closed.has("gone");
    const tokens = gone.reduce((sum, segment) => sum + segment.tokens, 0);
    rows.push({ kind: "gone-head", id: "gone", count: gone.length, tokens, open });
    if (open) {
      for (const [place, segment] of gone.entries()) {
        rows.push({ kind: "gone", id: `g${segment.index}`, gone: segment, place, of: gone.length });
      }
    }
  }
  return rows;
}

/** `sent at 3` if it was first sent earlier, `first sent here` if it is new. */
export function sentWords(segment: SegmentRow, number: number): string {
  if (segment.first_number === null) return "";
  return segment.first_number === number ? "first sent here" : `sent at ${exact(segment.first_number)}`;
}

/** A layer's name without its number: `history`. */
export function layerName(layer: { layer: LayerId; name: string }): string {
  return layer.name.startsWith(`${layer.layer} `) ? layer.name.slice(layer.layer.length + 1) : layer.layer === "tools" ? "" : layer.name;
}

const LONG = 90;

/** The beginning of a message, to tell questions and answers apart. */
export function excerptOf(segment: SegmentRow): string {
  if (segment.kind === "image" || segment.item || segment.role === "tools" || segment.role === "system") return "";
  const text = segment.text.slice(0, LONG * 3).replaceAll(/\s+/g, " ").trim();
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

/** The picture of an image segment: its digest, if the content names one. */
export function pictureOf(segment: SegmentRow): string {
  const content = segment.content as { picture?: { digest?: unknown } } | null;
  const digest = content?.picture?.digest;
  return segment.kind === "image" && typeof digest === "string" ? digest : "";
}

/** Non-text content formatted for reading; nothing if the text is readable itself. */
export function readable(segment: SegmentRow): string {
  if (segment.kind === "text" || segment.kind === "image" || segment.content == null) return "";
  return JSON.stringify(segment.content, null, 2);
}
