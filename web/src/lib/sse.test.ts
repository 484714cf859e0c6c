import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EventParser, EventStream, type ServerEvent } from "./sse";

describe("the parser", () => {
  const text = 'retry: 1000\n\n: a comment\nid: 1\nevent: block_delta\ndata: {"text":"a"}\n\nid: 2\r\nevent: end\r\ndata: one\r\ndata: two\r\n\r\nevent: ping\ndata: {}\n\n';

  test("gives the same events wherever the text is cut", () => {
    const whole = new EventParser().feed(text);
    expect(whole.map((event) => [event.id, event.type, event.data])).toEqual([
      ["1", "block_delta", '{"text":"a"}'],
      ["2", "end", "one\ntwo"],
      ["2", "ping", "{}"],
    ]);
    for (let cut = 1; cut < text.length; cut++) {
      const parser = new EventParser();
      expect([...parser.feed(text.slice(0, cut)), ...parser.feed(text.slice(cut))], `cut at ${cut}`).toEqual(whole);
    }
  });
});

/** A server of one stream: every connection is kept, with what it was asked with. */
class Server {
  asked: string[] = [];
  open: ReadableStreamDefaultController<Uint8Array>[] = [];
  status = 200;

  fetch = (_url: string, init: RequestInit): Promise<Response> => {
    this.asked.push(new Headers(init.headers).get("last-event-id") ?? "");
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.open.push(controller);
        init.signal?.addEventListener("abort", () => {
          try {
            controller.error(new DOMException("gone", "AbortError"));
          } catch {
            // It was closed before.
          }
        });
      },
    });
    return Promise.resolve(new Response(this.status === 200 ? body : null, { status: this.status }));
  };

  async send(text: string): Promise<void> {
    this.open.at(-1)?.enqueue(new TextEncoder().encode(text));
    await vi.advanceTimersByTimeAsync(0);
  }
}

describe("the stream", () => {
  let server: Server;
  let heard: ServerEvent[];
  let states: string[];
  let gone: number;
  let stream: EventStream;

  const see = (state: "visible" | "hidden"): void => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  };

  beforeEach(async () => {
    vi.useFakeTimers();
    see("visible");
    server = new Server();
    [heard, states, gone] = [[], [], 0];
    vi.stubGlobal("fetch", server.fetch);
    stream = new EventStream({
      url: "/api/x",
      onevent: (event) => heard.push(event),
      onstate: (state) => states.push(state),
      ongone: () => gone++,
      isLast: (event) => event.type === "end",
    });
    await vi.advanceTimersByTimeAsync(0);
  });

  afterEach(() => {
    stream.close();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("goes on behind the last event after 20 seconds of silence", async () => {
    await server.send("id: 7\nevent: a\ndata: {}\n\n");
    await vi.advanceTimersByTimeAsync(19_000);
    await server.send("event: ping\ndata: {}\n\n");
    await vi.advanceTimersByTimeAsync(19_000);
    expect(server.asked).toEqual([""]);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(server.asked).toEqual(["", "7"]);
    expect(heard.map((event) => event.type)).toEqual(["a"]);
  });

  test("comes back when the connection ends before the last event, and not after it", async () => {
    await server.send("id: 1\nevent: a\ndata: {}\n\n");
    server.open[0]?.close();
    await vi.advanceTimersByTimeAsync(300);
    expect(server.asked).toEqual(["", "1"]);
    await server.send("id: 2\nevent: end\ndata: {}\n\n");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.asked.length).toBe(2);
    expect(states.at(-1)).toBe("closed");
  });

  test("outlives a short look elsewhere, lets go on a long one, and comes back when seen", async () => {
    await server.send("id: 3\nevent: a\ndata: {}\n\n");
    see("hidden");
    await vi.advanceTimersByTimeAsync(5_000);
    see("visible");
    await vi.advanceTimersByTimeAsync(1);
    expect(server.asked.length).toBe(1);
    see("hidden");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states.at(-1)).toBe("hidden");
    expect(server.asked.length).toBe(1);
    see("visible");
    await vi.advanceTimersByTimeAsync(1);
    expect(server.asked).toEqual(["", "3"]);
  });

  test("that the server does not know any more is gone, once", async () => {
    server.status = 404;
    server.open[0]?.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(gone).toBe(1);
    expect(server.asked.length).toBe(2);
  });
});
