import type { Shapes } from "../../lib/types";

export type CacheTimeline = Shapes["CacheTimeline"];
export type TimelineRow = Shapes["TimelineRow"];
export type TimelineTotals = Shapes["TimelineTotals"];
export type TimelineBreak = Shapes["TimelineBreak"];
