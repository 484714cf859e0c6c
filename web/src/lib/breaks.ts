/** Cache breaks in words, shared by timeline, difference and doctor. */

import type { IconName } from "../ui/icons";
import type { Shapes } from "./types";

export type BreakKind = Shapes["TimelineBreak"]["kind"];
export type Blame = Shapes["TimelineBreak"]["blame"];
export type Certainty = Shapes["TimelineBreak"]["certainty"];
export type Tone = "plain" | "warn" | "bad";

/** The meaning, icon and tone of each kind. */
export const KINDS: Record<BreakKind, { about: string; icon: IconName; tone: Tone }> = {
  expected: { about: "a recorded boundary: nothing was lost by accident", icon: "info", tone: "plain" },
  expired: { about: "the cache had expired", icon: "clock", tone: "warn" },
  moved: { about: "bytes sent earlier changed", icon: "scissors", tone: "bad" },
  missed: { about: "the bytes match, but the provider did not read them from its cache", icon: "broken", tone: "warn" },
};

const BLAMES: Record<Blame, string> = {
  you: "you",
  tool: "your tool",
  vendor: "the vendor",
  nobody: "nobody",
};

/** Who caused it. */
export function blameWords(blame: Blame | null | undefined): string {
  return blame ? BLAMES[blame] : "responsibility unknown";
}

const CERTAINTIES: Record<Certainty, { word: string; about: string }> = {
  proven: { word: "proven", about: "seen in the bytes" },
  likely: { word: "likely", about: "the best explanation of the figures" },
  located: { word: "located, cause unknown", about: "it is known where it happened, but not why" },
  unknown: { word: "unknown", about: "neither place nor cause is recorded" },
};

export function certaintyWords(certainty: Certainty): { word: string; about: string } {
  return CERTAINTIES[certainty];
}
