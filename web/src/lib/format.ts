// Numbers and times in the words of every screen.

/** `12,345.60`: by hand, because the browser's own tables take longer to load than the rest of the first page. */
export function digits(n: number, decimals = 0): string {
  const [whole = "0", rest] = n.toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

const PLURALS: Record<string, string> = { story: "stories", entry: "entries", check: "checks", retry: "retries" };

/** `1 file`, `3 files`. */
export function count(n: number, word: string): string {
  return `${digits(n)} ${n === 1 ? word : (PLURALS[word] ?? `${word}s`)}`;
}

/** A known amount: `$1.34`; more digits where the sum is small. What something has cost is in the words of `cost`. */
export function money(usd: number): string {
  if (usd === 0) return "$0";
  if (Math.abs(usd) < 0.01) return `$${usd.toFixed(4)}`;
  return `$${digits(usd, Number.isInteger(usd) ? 0 : 2)}`;
}

/** What something has cost, as far as it is known. */
export interface Cost {
  cost_usd?: number | null;
  cost_basis?: "reported" | "estimated" | "unknown";
}

/** `$1.34`, `≈ $1.34` where it is estimated, `at least $1.34`, `unknown`. */
export function cost({ cost_usd: usd, cost_basis: basis }: Cost): string {
  if (usd === null || usd === undefined) return "unknown";
  if (usd === 0) return basis === "unknown" ? "unknown" : money(0);
  return `${basis === "unknown" ? "at least " : basis === "estimated" ? "≈ " : ""}${money(usd)}`;
}

/** The used share of a budget; null if the cost is unknown. */
export function costShare({ cost_usd: usd, cost_basis: basis }: Cost, limit: number | null | undefined): number | null {
  if (!limit || usd === null || usd === undefined || (usd === 0 && basis === "unknown")) return null;
  return usd / limit;
}

/** The same where nothing else says that it is about money: `cost unknown`. */
export function costAlone(of: Cost): string {
  const words = cost(of);
  return words === "unknown" ? "cost unknown" : words;
}

/** `912`, `41.2k`, `3.1M`. */
export function tokens(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return String(Math.round(n));
  if (n < 1_000_000) return `${trim(n / 1000)}k`;
  return `${trim(n / 1_000_000)}M`;
}

function trim(n: number): string {
  return n >= 100 ? String(Math.round(n)) : n.toFixed(1).replace(/\.0$/, "");
}

/** `912 B`, `41 kB`, `3.1 MB`. */
export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1_000_000) return `${trim(n / 1000)} kB`;
  return `${trim(n / 1_000_000)} MB`;
}

/** A length of time for people: `4 s`, `3 min`, `2 h 10 min`, `3 days`. */
export function span(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 48) return min % 60 === 0 ? `${h} h` : `${h} h ${min % 60} min`;
  return `${Math.floor(h / 24)} days`;
}

/** A clock: `0:42`, `2:58`, `1:04:09`. */
export function clock(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

/** `120 ms`, `2.4 s`, `3 min`. */
export function millis(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trim(ms / 1000)} s`;
  return span(ms / 1000);
}

/** `4 s ago`, `just now`, `in 12 min`. */
export function ago(at: string | number | Date, now: number): string {
  const time = new Date(at).getTime();
  if (!Number.isFinite(time)) return "–";
  const seconds = (now - time) / 1000;
  if (seconds < -1.5) return `in ${span(-seconds)}`;
  if (seconds < 1.5) return "just now";
  return `${span(seconds)} ago`;
}

/** The same without `ago`, for narrow columns. */
export function age(at: string | number | Date, now: number): string {
  const time = new Date(at).getTime();
  if (!Number.isFinite(time)) return "–";
  const s = Math.max(0, Math.round((now - time) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** `19:06`, or with the date where it is another day, by the clock of the reader. */
export function timeOfDay(at: string | number | Date, now: number): string {
  const date = new Date(at);
  if (!Number.isFinite(date.getTime())) return "–";
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  const sameDay = date.toDateString() === new Date(now).toDateString();
  return sameDay ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** The exact time, for hovering. */
export function exact(at: string | number | Date): string {
  const date = new Date(at);
  return Number.isFinite(date.getTime()) ? date.toLocaleString([], { hour12: false, timeZoneName: "short" }) : "";
}

/** `rate limited until 19:06 (in 15 min)`. */
export function until(at: string, now: number): string {
  return `${timeOfDay(at, now)} (${ago(at, now)})`;
}

/** `41 %`. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** The last part of a path. */
export function basename(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts[parts.length - 1] ?? path;
}
