import type { Shapes } from "../../lib/types";

export type SpendingPage = Shapes["SpendingPage"];
export type SpendRow = Shapes["SpendRow"];
export type SpendEntry = Shapes["SpendEntry"];
