import type { Shapes } from "../../lib/types";

export type RequestAnatomy = Shapes["RequestAnatomy"];
export type RequestSummary = Shapes["RequestSummary"];
export type SegmentRow = Shapes["SegmentRow"];
export type LayerShare = Shapes["LayerShare"];
export type GoneSegment = Shapes["GoneSegment"];
export type WireBody = Shapes["WireBody"];
export type SessionCheck = Shapes["SessionCheck"];
export type LayerId = LayerShare["layer"];
export type SegmentState = SegmentRow["state"];
