/** Types of the server's answers: `Shapes["AgentPage"]` is the record of that name in its table
 * of routes. */

import type { components } from "./schema";

export type Shapes = components["schemas"];
