// Writes src/lib/schema.ts from the server's own OpenAPI. With a path as argument the result goes
// there: a test compares it with the file that is kept.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const python = process.env.PYTHON ?? fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
const document = JSON.parse(
  execFileSync(python, ["-m", "lamina.apps.web.openapi"], { encoding: "utf8", maxBuffer: 64 * 2 ** 20 }),
);
const head = "// Made by `npm run schema` from the server's table of routes. Do not edit.\n";
const text = head + astToString(await openapi(document));
writeFileSync(process.argv[2] ?? fileURLToPath(new URL("../src/lib/schema.ts", import.meta.url)), text);
