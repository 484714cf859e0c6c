import { describe, expect, test } from "vitest";
import { href, match, segments } from "./router.svelte";

const rows = [
  { id: "start", patterns: [""] },
  { id: "chat", patterns: ["w/:workspace", "w/:workspace/s/:session"] },
  { id: "context", patterns: ["w/:workspace/s/:session/context/:request"] },
  { id: "notes", patterns: ["w/:workspace/notes/*path"] },
];
const at = (hash: string) => match(rows, segments(hash));

describe("the router", () => {
  test("finds a screen and what its address names", () => {
    expect(at("#/")?.row.id).toBe("start");
    expect(at("")?.row.id).toBe("start");
    expect(at("#/w/notes")).toEqual({ row: rows[1], params: { workspace: "notes" } });
    expect(at("#/w/notes/s/harbour?row=7")?.params).toEqual({ workspace: "notes", session: "harbour" });
    expect(at("#/w/n/s/h/context/r7")?.row.id).toBe("context");
    expect(at("#/w/n/notes/a/b.md")?.params.path).toBe("a/b.md");
    expect(at("#/nowhere/at/all")).toBeNull();
  });

  test("carries any name there and back", () => {
    for (const name of ["a b", "ä/ö", "50%", "#?&", "..", "<img>", "日本"]) {
      expect(at(href("w", name, "s", name))?.params).toEqual({ workspace: name, session: name });
    }
  });

  test("keeps what is no encoding as it is", () => {
    expect(segments("#/w/%E0%A4%A")).toEqual(["w", "%E0%A4%A"]);
  });

  test("writes a query", () => {
    expect(href("w", "n", "notes", { q: "a b" })).toBe("#/w/n/notes?q=a+b");
  });
});
