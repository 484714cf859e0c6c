import type { Shapes } from "../../lib/types";

export type DoctorPage = Shapes["DoctorPage"];
export type FindingRow = Shapes["FindingRow"];
export type CauseSum = Shapes["CauseSum"];
export type ReportTotals = Shapes["ReportTotals"];
export type SentRequests = Shapes["SentRequests"];
export type JobStarted = Shapes["JobStarted"];
