/** Two requests compared, in words. */

import { exact, money } from "../../lib/numbers";
import type { ComparedSegment, DifferenceLine, Mover, RequestDifference, RequestSummary } from "./types";

/** The request that another is compared with if nobody says which: the one it was compared with when it
 * was sent, else the one before it. Nothing for the first. */
export function baseOf(requests: readonly RequestSummary[], after: string): string {
  const place = requests.findIndex((request) => request.id === after);
  const found = requests[place];
  if (!found) return "";
  return found.base || requests[place - 1]?.id || "";
}

/** A request in a list to choose from. */
export function optionWords(request: RequestSummary): string {
  const question = request.question_text.replaceAll(/\s+/g, " ");
  const text = question.length > 48 ? `${question.slice(0, 47)}…` : question;
  return [`${exact(request.number)}`, text, request.step === "results" ? "after tools" : "", request.active ? "" : "other branch"]
    .filter(Boolean)
    .join(" · ");
}

/** Who moved it. */
export function moverWords(mover: Mover): string {
  const who: Record<Mover["kind"], string> = { hook: `the hook ${mover.name}`, engine: "Lamina itself", person: mover.name || "a person" };
  return `${who[mover.kind]}${mover.op ? ` (${mover.op.replaceAll("_", " ")})` : ""}`;
}

/** What it cost, as far as that is known. */
export function costWords(difference: RequestDifference): string {
  if (!difference.moved) return "nothing: nothing moved";
  if (difference.again === 0) return "nothing is processed again";
  const tokens = `${exact(difference.again)} tokens again`;
  return difference.price === null ? `${tokens}, price unknown` : `${tokens}, ${money(difference.price)} more than reading them`;
}

/** The headline. */
export function headline(difference: RequestDifference): string {
  const moved = difference.moved;
  const isAll = difference.agree >= difference.of;
  const agrees = isAll ? `All ${exact(difference.of)} tokens agree` : `${exact(difference.agree)} of ${exact(difference.of)} tokens agree`;
  if (!moved) return isAll ? `${agrees}; nothing moved` : `${agrees}; nothing moved, and the rest is new`;
  if (isAll) return `${agrees}; the other one goes on from byte ${exact(moved.byte)}`;
  if (moved.expected) return `${agrees}; what is new begins at byte ${exact(moved.byte)}`;
  return `${agrees}; they part at byte ${exact(moved.byte)}`;
}

export const MARKS: Record<DifferenceLine["mark"], { sign: string; word: string }> = {
  same: { sign: " ", word: "" },
  removed: { sign: "-", word: "removed" },
  added: { sign: "+", word: "added" },
  gap: { sign: "⋯", word: "left out here" },
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

/** Segments that were kept one after the other are one row: what changed is what one looks for. */
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
