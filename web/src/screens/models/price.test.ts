import { expect, it } from "vitest";
import { found, lifetime, ordered, perMillion, type Choice } from "./price";

const choice = (target: string, missing = ""): Choice => ({ target: { target }, provider: target.split(":")[0], price: "", missing }) as unknown as Choice;

it("a price that nobody knows is not nothing", () => {
  expect([perMillion(null), perMillion(0), perMillion(0.025), perMillion(2.5), perMillion(15)]).toEqual([
    "unknown", "free", "$0.025", "$2.50", "$15",
  ]);
});

it("lifetimes are said in the unit that fits", () => {
  expect([lifetime(null), lifetime(0), lifetime(300), lifetime(3600), lifetime(86400)]).toEqual([
    "while running", "no cache", "5 min", "1 h", "24 h",
  ]);
});

it("targets are found by all words, and those that can be asked stand first", () => {
  const all = [choice("openai:gpt-5", "no key"), choice("gemini:pro"), choice("local:small"), choice("openai:gpt-5-mini", "no key")];
  expect(found(all, "gpt mini", false).map((each) => each.target.target)).toEqual(["openai:gpt-5-mini"]);
  expect(found(all, "", true).map((each) => each.target.target)).toEqual(["gemini:pro", "local:small"]);
  expect(ordered(all)[0]?.target.target).toBe("local:small");
});
