import { beforeEach, describe, expect, test, vi } from "vitest";
import { caps, keys } from "./keys.svelte";

function press(key: string, target: EventTarget = document.body, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  Object.defineProperty(event, "target", { value: target });
  keys.handle(event);
  return event;
}

describe("keys", () => {
  const ran: string[] = [];
  let remove = (): void => undefined;

  beforeEach(() => {
    remove();
    ran.length = 0;
    const key = (keys: string, more = {}) => ({ keys, label: keys, group: "Test", run: () => ran.push(keys), ...more });
    remove = keys.add([key("c"), key("g s"), key("g d"), key("?"), key("Mod+k", { typing: true }), key("x", { when: () => false })]);
  });

  test("run one by one, and one after the other", () => {
    press("c");
    press("g");
    press("d");
    press("?", document.body, { shiftKey: true });
    expect(ran).toEqual(["c", "g d", "?"]);
  });

  test("do not fire while somebody types, but for those that say so", () => {
    const input = document.createElement("textarea");
    expect(press("c", input).defaultPrevented).toBe(false);
    press("k", input, { ctrlKey: true });
    expect(ran).toEqual(["Mod+k"]);
  });

  test("of a sequence are forgotten after a while, and a wrong second key counts by itself", () => {
    vi.useFakeTimers();
    press("g");
    vi.advanceTimersByTime(2000);
    press("s");
    expect(ran).toEqual([]);
    press("g");
    press("c");
    expect(ran).toEqual(["c"]);
    vi.useRealTimers();
  });

  test("that make no sense now are not taken", () => {
    expect(press("x").defaultPrevented).toBe(false);
  });

  test("of the youngest go first, and are gone with it", () => {
    const gone = keys.add([{ keys: "c", label: "c", group: "Test", run: () => ran.push("screen") }]);
    press("c");
    gone();
    press("c");
    expect(ran).toEqual(["screen", "c"]);
  });

  test("leave Escape to an open dialog", () => {
    const gone = keys.add([{ keys: "Escape", label: "stop", group: "Test", typing: true, run: () => ran.push("stop") }]);
    const dialog = document.createElement("dialog");
    const button = document.createElement("button");
    dialog.append(button);
    press("Escape", button);
    press("Escape");
    gone();
    expect(ran).toEqual(["stop"]);
  });

  test("are drawn as caps", () => {
    expect(caps("g s")).toEqual([["g"], ["s"]]);
    expect(caps("Mod+k").flat().at(-1)).toBe("K");
    expect(caps("Escape")).toEqual([["Esc"]]);
  });
});
