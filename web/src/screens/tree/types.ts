import type { Shapes } from "../../lib/types";

export type BranchMap = Shapes["BranchMap"];
export type BranchNode = Shapes["BranchNode"];
export type Position = Shapes["Position"];
