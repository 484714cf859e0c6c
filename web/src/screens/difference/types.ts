import type { Shapes } from "../../lib/types";

export type RequestDifference = Shapes["RequestDifference"];
export type DifferenceLine = Shapes["DifferenceLine"];
export type ComparedSegment = Shapes["ComparedSegment"];
export type Mover = Shapes["Mover"];
export type RequestSummary = Shapes["RequestSummary"];
export type SentRequests = Shapes["SentRequests"];
