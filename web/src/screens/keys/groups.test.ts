import { expect, it } from "vitest";
import { groupKeys } from "./groups";

const key = (keys: string, label: string, group: string, more = {}) => ({ keys, label, group, ...more });

it("keys of the screen come first, those of everywhere last, in the order they were registered", () => {
  const groups = groupKeys([
    key("?", "Show all shortcuts", "Everywhere"),
    key("g n", "Go to notes", "Go"),
    key("j", "Next passage", "Notes"),
    key("k", "Previous passage", "Notes"),
  ]);
  expect(groups.map((group) => [group.name, group.rows.map((row) => row.keys)])).toEqual([
    ["Notes", ["j", "k"]],
    ["Go", ["g n"]],
    ["Everywhere", ["?"]],
  ]);
});

it("a key is listed once, with what it does now", () => {
  const groups = groupKeys([
    key("n", "New session", "Go"),
    key("n", "New agent", "Agents"),
    key("x", "Hidden", "Go", { hidden: true }),
    key("y", "Not now", "Go", { when: () => false }),
  ]);
  expect(groups).toEqual([{ name: "Agents", rows: [{ keys: "n", label: "New agent" }] }]);
});
