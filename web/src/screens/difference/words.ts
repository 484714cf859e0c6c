/** Two requests compared, in words. */

import { exact, money } from "../../lib/numbers";
import type { ComparedSegment, DifferenceLine, Mover, RequestDifference, RequestSummary } from "./types";

/** The default request to compare with: the base recorded when it was sent, else the previous one. Nothing for
 * the first. */
export function baseOf(requests: readonly RequestSummary[], after: string): string {
  const place = requests.findIndex((request) => request.id === after);
  const found = requests[place];
  if (!found) return "";
  return found.base || requests[place - 1]?.id || "";
}

/** The label of a request in a list. */
export function optionWords(request: RequestSummary): string {
  const question = request.question_text.replaceAll(/\s+/g, " ");
  const text = question.length > 48 ? `${question.slice(0, 47)}…` : question;
  return [`${exact(request.number)}`, text, request.step === "results" ? "after tools" : "", request.active ? "" : "other branch"]
    .filter(Boolean)
    .join(" · ");
}

/** Names who moved it. */
export function moverWords(mover: Mover): string {
  const who: Record<Mover["kind"], string> = { hook: `the hook ${mover.name}`, engine: "Lamina itself", person: mover.name || "a person" };
  return `${who[mover.kind]}${mover.op ? ` (${mover.op.replaceAll("_", " ")})` : ""}`;
}

/** Its cost, as far as known. */
export function costWords(difference: RequestDifference): string {
  if (!difference.moved) return "nothing moved";
  if (difference.again === 0) return "nothing is processed again";
  const tokens = `${exact(difference.again)} tokens again`;
  return difference.price === null ? `${tokens}, price unknown` : `${tokens}, ${money(difference.price)} more than reading them`;
}

/** The headline. */
export function headline(difference: RequestDifference): string {
  const moved = difference.moved;
  const isAll = difference.agree >= difference.of;
  const agrees = isAll ? `All ${exact(difference.of)} tokens match` : `${exact(difference.agree)} of ${exact(difference.of)} tokens match`;
  if (!moved) return isAll ? `${agrees}; nothing moved` : `${agrees}; nothing moved, and the rest is new`;
  if (isAll) return `${agrees}; the other request continues from byte ${exact(moved.byte)}`;
  if (moved.expected) return `${agrees}; new content starts at byte ${exact(moved.byte)}`;
  return `${agrees}; they diverge at byte ${exact(moved.byte)}`;
}

export const MARKS: Record<DifferenceLine["mark"], { sign: string; word: string }> = {
  same: { sign: " ", word: "" },
  removed: { sign: "-", word: "removed" },
  added: { sign: "+", word: "added" },
  gap: { sign: "⋯", word: "unchanged lines" },
};

/** The line difference as plain text, to copy. */
export function plainLines(lines: readonly DifferenceLine[]): string {
  return lines.map((line) => (line.mark === "gap" ? "⋯" : `${MARKS[line.mark].sign} ${line.text}`)).join("\n");
}

export interface SegmentGroup {
  id: string;
  status: ComparedSegment["status"];
  segments: ComparedSegment[];
  tokens: number;
}

/** Joins consecutive unchanged segments into one row, so that changes stand out. */
export function groupSegments(segments: readonly ComparedSegment[]): SegmentGroup[] {
  const groups: SegmentGroup[] = [];
  for (const segment of segments) {
    const last = groups.at(-1);
    if (last && last.status === "kept" && segment.status === "kept" && last.segments[0]?.agrees === segment.agrees) {
      last.segments.push(segment);
      last.tokens += segment.tokens;
    } else {
      groups.push({ id: `${segment.status}-${segment.index}-${groups.length}`, status: segment.status, segments: [segment], tokens: segment.tokens });
    }
  }
  return groups;
}
