/** The numbers law: unknown is never 0, an estimate carries `~`, cached is a part of the input. */

export const UNKNOWN = "unknown";

type Maybe = number | null | undefined;

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 16104 is `16.1k`, 940 is `940`. */
export function short(count: Maybe): string {
  if (count == null) return UNKNOWN;
  const size = Math.abs(count);
  if (size < 1000) return String(Math.round(count));
  const [value, unit] = size < 999_950 ? [count / 1e3, "k"] : [count / 1e6, "M"];
  return `${value.toFixed(Math.abs(value) < 99.95 ? 1 : 0)}${unit}`;
}

/** 16104 is `16,104`. */
export function exact(count: Maybe): string {
  return count == null ? UNKNOWN : whole.format(count);
}

const cents = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** US dollars with as many digits as are meaningful, as `core/text/money.py` writes them. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  const [sign, size] = [amount < 0 ? "-" : "", Math.abs(amount)];
  if (size >= 0.0995) return `${sign}$${cents.format(size)}`;
  if (size >= 0.00095) return `${sign}$${size.toFixed(4)}`;
  return size >= 5e-7 ? `${sign}$${size.toFixed(6)}` : `under ${sign}$0.000001`;
}

/** An estimate carries `~`; what was reported by a provider and priced by the table is none. */
export function money(amount: Maybe, { estimated = true } = {}): string {
  if (amount == null) return UNKNOWN;
  const text = dollars(amount);
  return estimated && !text.startsWith("under") ? `~${text}` : text;
}

/** `~$0.0030 to ~$0.0112`, or one number if both ends read the same. */
export function moneyRange(low: Maybe, high: Maybe): string {
  if (low == null && high == null) return UNKNOWN;
  if (low == null || high == null) return money(low ?? high);
  const [from, to] = [money(low), money(high)];
  return from === to ? to : `${from} to ${to}`;
}

/** A share of 0..1 as `91%`; 100% and 0% only if exact. */
export function percent(share: Maybe, digits = 0): string {
  if (share == null || Number.isNaN(share)) return UNKNOWN;
  if (share <= 0) return "0%";
  if (share >= 1) return "100%";
  const text = (share * 100).toFixed(digits);
  if (Number(text) === 0) return `<${digits ? "0.1" : "1"}%`;
  if (Number(text) === 100) return `>${digits ? "99.9" : "99"}%`;
  return `${text}%`;
}

/** The share of the input that came from the cache; unknown if unreported. */
export function cachedShare(input: Maybe, cached: Maybe): number | null {
  if (input == null || cached == null || input <= 0) return null;
  return Math.min(1, cached / input);
}

export function seconds(value: Maybe): string {
  if (value == null) return UNKNOWN;
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 119.5) return `${Math.round(value)} s`;
  if (value < 7170) return `${Math.round(value / 60)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

export function bytes(count: Maybe): string {
  if (count == null) return UNKNOWN;
  if (count < 1000) return `${count} B`;
  if (count < 999_500) return `${(count / 1e3).toFixed(count < 9950 ? 1 : 0)} kB`;
  if (count < 999.5e6) return `${(count / 1e6).toFixed(count < 9.95e6 ? 1 : 0)} MB`;
  return `${(count / 1e9).toFixed(1)} GB`;
}

/** Two decimals, as behaviour 42 draws scores. */
export function score(value: Maybe): string {
  return value == null ? UNKNOWN : value.toFixed(2).replace("-0.00", "0.00");
}

/** `1 tool`, `2 tools`, `2 matches` with the plural named. */
export function count(value: number, noun: string, plural = `${noun}s`): string {
  return `${exact(value)} ${value === 1 ? noun : plural}`;
}

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** Numbers are seconds since 1970, as the server writes them. */
type Moment = string | number | Date | null | undefined;

function dateOf(at: string | number | Date): Date {
  return typeof at === "number" ? new Date(at * 1000) : new Date(at);
}

/** Short and relative for lists: `now`, `12 min`, `14:05`, `Mar 3`. */
export function ago(at: Moment, now = new Date()): string {
  if (!at) return UNKNOWN;
  const date = dateOf(at);
  const past = (now.getTime() - date.getTime()) / 1000;
  if (Number.isNaN(past)) return UNKNOWN;
  if (past < 60) return "now";
  if (past < 3600) return `${Math.floor(past / 60)} min`;
  if (date.toDateString() === now.toDateString()) return clock.format(date);
  return day.format(date);
}

export function moment(at: Moment): string {
  return at ? full.format(dateOf(at)) : UNKNOWN;
}
