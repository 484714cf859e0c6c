/** The only access to the server: nothing else in the app calls fetch. Errors carry the server's stable code
 * and a message that says what to do. */

import { EventStream, type ServerEvent, type StreamState } from "./sse";

export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
    readonly fields: Record<string, string> = {},
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | null | undefined>;

interface Options {
  query?: Query;
  signal?: AbortSignal;
  /** Sent as Idempotency-Key: a repeated request is carried out once. */
  once?: string;
  /** Sent as If-Match. */
  etag?: string;
}

/** `path("workspaces", w, "sessions", s)` is `/api/workspaces/…`, every part encoded. */
export function path(...parts: (string | number)[]): string {
  return `/api/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

/** A path inside a workspace keeps its slashes. */
export function filePath(base: string, file: string): string {
  return `${base}/${file.split("/").map(encodeURIComponent).join("/")}`;
}

export const ofWorkspace = (workspace: string, ...rest: (string | number)[]): string =>
  path("workspaces", workspace, ...rest);

export const ofSession = (workspace: string, session: string, ...rest: (string | number)[]): string =>
  path("workspaces", workspace, "sessions", session, ...rest);

function withQuery(url: string, query?: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${url}?${text}` : url;
}

async function failure(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as {
      error: { code?: string; message?: string; fields?: Record<string, string> };
    };
    return new ApiError(
      error.code ?? "unknown",
      error.message ?? `The server answered ${answer.status}.`,
      answer.status,
      error.fields ?? {},
    );
  } catch {
    return new ApiError("unreadable", `The server answered ${answer.status} without a reason.`, answer.status);
  }
}

async function send(method: string, url: string, body: unknown, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  // Every unsafe call is JSON, even without a body: this blocks forms from other sites.
  if (method !== "GET") headers["content-type"] = "application/json";
  if (options.once) headers["idempotency-key"] = options.once;
  if (options.etag) headers["if-match"] = options.etag;
  let answer: Response;
  try {
    answer = await fetch(withQuery(url, options.query), {
      method,
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError("offline", "The server is not responding. Is `lamina web` still running?");
  }
  if (!answer.ok) throw await failure(answer);
  return answer;
}

async function json<T>(method: string, url: string, body: unknown, options: Options): Promise<T> {
  const answer = await send(method, url, body, options);
  const text = await answer.text();
  return (text ? JSON.parse(text) : null) as T;
}

export const api = {
  get: <T>(url: string, query?: Query, options: Options = {}) =>
    json<T>("GET", url, undefined, { ...options, ...(query ? { query } : {}) }),
  post: <T>(url: string, body: unknown = {}, options: Options = {}) => json<T>("POST", url, body, options),
  put: <T>(url: string, body: unknown = {}, options: Options = {}) => json<T>("PUT", url, body, options),
  patch: <T>(url: string, body: unknown = {}, options: Options = {}) => json<T>("PATCH", url, body, options),
  delete: <T>(url: string, options: Options = {}) => json<T>("DELETE", url, undefined, options),
  /** The raw answer, for files: `(await api.raw(url)).blob()`. */
  raw: (url: string, query?: Query) => send("GET", url, undefined, query ? { query } : {}),
};

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The message of whatever was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export interface Watch<T> {
  onevent: (event: T & { type: string }, id: number) => void;
  onstate?: (state: StreamState) => void;
  ongone?: () => void;
  /** Resume after this event. */
  after?: number;
  /** Event types that end the stream (`end`, `failed`); without any it never ends. */
  last?: readonly string[];
}

/** Watches a stream of JSON events; call `close()` when it is no longer shown. */
export function watch<T = Record<string, unknown>>(url: string, options: Watch<T>): EventStream {
  const last = options.last ?? [];
  return new EventStream({
    url,
    ...(options.after === undefined ? {} : { lastId: String(options.after) }),
    onevent: (event: ServerEvent) =>
      options.onevent({ ...(JSON.parse(event.data) as T), type: event.type }, Number(event.id)),
    isLast: (event) => last.includes(event.type),
    ...(options.onstate ? { onstate: options.onstate } : {}),
    ...(options.ongone ? { ongone: options.ongone } : {}),
  });
}

export interface JobEvent {
  type: string;
  done?: number | null;
  total?: number | null;
  text?: string;
  code?: string;
  message?: string;
  state?: string;
  result?: unknown;
}

/** Follows a job to its end: resolves with its last event, or throws what it failed with. */
export function follow(job: string, onprogress: (event: JobEvent) => void, signal?: AbortSignal): Promise<JobEvent> {
  return new Promise((resolve, reject) => {
    const stream = watch<JobEvent>(path("jobs", job, "events"), {
      last: ["end", "failed"],
      onevent: (event) => {
        if (event.type === "failed") reject(new ApiError(event.code ?? "failed", event.message ?? "It failed."));
        else if (event.type === "end") resolve(event);
        else onprogress(event);
      },
      ongone: () => reject(new ApiError("gone", "The server restarted while this was running. Start it again.")),
    });
    signal?.addEventListener("abort", () => {
      stream.close();
      void api.delete(path("jobs", job)).catch(() => undefined);
      reject(new DOMException("stopped", "AbortError"));
    });
  });
}
