import { describe, expect, it } from "vitest";
import { fuzzy, pieces, rank, sections } from "./fuzzy";

const entry = (id: string, label: string, group = "Screens", detail = "") => ({ id, label, group, detail });

describe("a few letters", () => {
  it("find words, beginnings of words, and letters in their order", () => {
    expect(fuzzy("Cache timeline", "time")?.places).toEqual([6, 7, 8, 9]);
    expect(fuzzy("Cache timeline", "ct")?.places).toEqual([0, 6]);
    expect(fuzzy("Cache timeline", "tca")).toBeNull();
    expect(fuzzy("Settings: Keys of vendors", "key set")).not.toBeNull();
  });

  it("find nothing by chance in a long text", () => {
    expect(fuzzy("A long line about the harbour and its many tides at noon", "lbd")).toBeNull();
  });

  it("fit everything while nothing is typed", () => {
    expect(fuzzy("anything", "  ")).toEqual({ score: 0, places: [] });
  });
});

describe("what is found", () => {
  const entries = [entry("1", "Notes"), entry("2", "Doctor"), entry("3", "Do nothing"), entry("4", "harbour", "Sessions", "about notes")];
  const ids = (query: string, recent: string[] = []) => rank(entries, query, recent).map((row) => row.entry.id);

  it("stands with the best first", () => {
    expect(ids("no")[0]).toBe("1");
    expect(ids("notes")).toEqual(["1", "4"]);
    expect(ids("zz")).toEqual([]);
  });

  it("begins with what was chosen lately while nothing is typed", () => {
    expect(ids("", ["3", "2"])).toEqual(["3", "2", "1", "4"]);
  });

  it("prefers what was chosen lately among equals, and no more", () => {
    expect(ids("do", ["3"])[0]).toBe("3");
    expect(ids("doctor", ["3"])[0]).toBe("2");
  });

  it("is grouped, the recent apart until something is typed", () => {
    const names = (query: string) => sections(rank(entries, query, ["4"]), ["4"], query).map((section) => section.name);
    expect(names("")).toEqual(["Recent", "Screens"]);
    expect(names("harb")).toEqual(["Sessions"]);
  });
});

it("letters that were meant are marked, and no letter is lost", () => {
  expect(pieces("Notes", [0, 1])).toEqual([{ text: "No", hit: true }, { text: "tes", hit: false }]);
  expect(pieces("Notes", [])).toEqual([{ text: "Notes", hit: false }]);
});
