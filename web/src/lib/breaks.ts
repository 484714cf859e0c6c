/** A cache that did not hit, in words: one vocabulary for timeline, difference and doctor. */

import type { IconName } from "../ui/icons";
import type { Shapes } from "./types";

export type BreakKind = Shapes["TimelineBreak"]["kind"];
export type Blame = Shapes["TimelineBreak"]["blame"];
export type Certainty = Shapes["TimelineBreak"]["certainty"];
export type Tone = "plain" | "warn" | "bad";

/** What a kind means, how it is marked, and how loud. */
export const KINDS: Record<BreakKind, { about: string; icon: IconName; tone: Tone }> = {
  expected: { about: "a recorded boundary: nothing was lost by accident", icon: "info", tone: "plain" },
  expired: { about: "the cache's lifetime had passed", icon: "clock", tone: "warn" },
  moved: { about: "bytes that had been sent changed", icon: "scissors", tone: "bad" },
  missed: { about: "the bytes agree, and the provider did not read them", icon: "broken", tone: "warn" },
};

const BLAMES: Record<Blame, string> = {
  you: "you",
  tool: "your tool",
  vendor: "the vendor",
  nobody: "nobody",
};

/** Whose doing it was. */
export function blameWords(blame: Blame | null | undefined): string {
  return blame ? BLAMES[blame] : "not known whose";
}

const CERTAINTIES: Record<Certainty, { word: string; about: string }> = {
  proven: { word: "proven", about: "seen in the bytes" },
  likely: { word: "likely", about: "the best explanation of the figures" },
  located: { word: "place known, cause open", about: "where it happened is known, and not why" },
  unknown: { word: "cause not known", about: "the record shows neither place nor cause" },
};

export function certaintyWords(certainty: Certainty): { word: string; about: string } {
  return CERTAINTIES[certainty];
}
