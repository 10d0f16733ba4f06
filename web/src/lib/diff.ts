// Differences of texts: reading a unified patch, and making one of two texts before a save.

export type RowKind = "context" | "added" | "removed";

export interface Row {
  kind: RowKind;
  text: string;
  /** Line numbers, from 1, where the line exists. */
  old: number | null;
  new: number | null;
}

export interface Hunk {
  header: string;
  rows: Row[];
}

export interface FileDiff {
  path: string;
  /** The name before, where it was another one. */
  from: string | null;
  status: "added" | "removed" | "modified" | "renamed";
  binary: boolean;
  added: number;
  removed: number;
  hunks: Hunk[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;

/** Git writes names with unusual characters in quotes. */
function unquoted(name: string): string {
  if (!name.startsWith('"')) return name.replace(/\t.*$/, "");
  const bytes: number[] = [];
  const body = name.slice(1, name.lastIndexOf('"'));
  const escapes: Record<string, number> = { n: 10, t: 9, r: 13, '"': 34, "\\": 92, a: 7, b: 8, f: 12, v: 11 };
  const encoder = new TextEncoder();
  for (let at = 0; at < body.length; at++) {
    if (body[at] !== "\\") {
      bytes.push(...encoder.encode(body[at] ?? ""));
      continue;
    }
    const octal = /^[0-7]{3}/.exec(body.slice(at + 1));
    if (octal) {
      bytes.push(parseInt(octal[0], 8));
      at += 3;
    } else {
      bytes.push(escapes[body[at + 1] ?? ""] ?? 63);
      at += 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

function side(name: string): string | null {
  const clean = unquoted(name.trimEnd());
  if (clean === "/dev/null") return null;
  return clean.replace(/^[ab]\//, "");
}

/** Reads a unified patch of git. What it does not understand is left out, never guessed. */
export function parsePatch(patch: string): FileDiff[] {
  const files: FileDiff[] = [];
  let file: FileDiff | null = null;
  let hunk: Hunk | null = null;
  let [oldLine, newLine, oldLeft, newLeft] = [0, 0, 0, 0];
  for (const line of patch.split("\n")) {
    if (hunk && (oldLeft > 0 || newLeft > 0)) {
      const mark = line[0];
      const text = line.slice(1);
      if (mark === "+") {
        hunk.rows.push({ kind: "added", text, old: null, new: newLine++ });
        newLeft--;
        if (file) file.added++;
        continue;
      }
      if (mark === "-") {
        hunk.rows.push({ kind: "removed", text, old: oldLine++, new: null });
        oldLeft--;
        if (file) file.removed++;
        continue;
      }
      if (mark === " " || line === "") {
        hunk.rows.push({ kind: "context", text, old: oldLine++, new: newLine++ });
        oldLeft--;
        newLeft--;
        continue;
      }
      if (mark === "\\") continue;
    }
    if (line.startsWith("diff --git ")) {
      const names = /^diff --git (?:"?a\/)(.*?)"? "?b\/(.*?)"?$/.exec(line);
      file = {
        path: names?.[2] ?? line.slice(11),
        from: null,
        status: "modified",
        binary: false,
        added: 0,
        removed: 0,
        hunks: [],
      };
      files.push(file);
      hunk = null;
      continue;
    }
    const start = HUNK.exec(line);
    if (start && file) {
      hunk = { header: (start[5] ?? "").trim(), rows: [] };
      file.hunks.push(hunk);
      [oldLine, oldLeft] = [Number(start[1]), Number(start[2] ?? 1)];
      [newLine, newLeft] = [Number(start[3]), Number(start[4] ?? 1)];
      continue;
    }
    if (!file) continue;
    if (line.startsWith("new file mode")) file.status = "added";
    else if (line.startsWith("deleted file mode")) file.status = "removed";
    else if (line.startsWith("rename from ")) [file.status, file.from] = ["renamed", unquoted(line.slice(12))];
    else if (line.startsWith("rename to ")) file.path = unquoted(line.slice(10));
    else if (line.startsWith("Binary files ") || line === "GIT binary patch") file.binary = true;
    else if (line.startsWith("+++ ")) file.path = side(line.slice(4)) ?? file.path;
    else if (line.startsWith("--- ")) file.path = side(line.slice(4)) ?? file.path;
  }
  return files;
}

export interface Pair {
  left: Row | null;
  right: Row | null;
}

/** The rows of a hunk side by side: each removed line is next to the added line that replaces it. */
export function sideBySide(rows: Row[]): Pair[] {
  const pairs: Pair[] = [];
  let at = 0;
  while (at < rows.length) {
    const row = rows[at];
    if (!row) break;
    if (row.kind === "context") {
      pairs.push({ left: row, right: row });
      at++;
      continue;
    }
    const [removed, added]: [Row[], Row[]] = [[], []];
    for (; at < rows.length && rows[at]?.kind !== "context"; at++) {
      const next = rows[at];
      if (next) (next.kind === "removed" ? removed : added).push(next);
    }
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      pairs.push({ left: removed[i] ?? null, right: added[i] ?? null });
    }
  }
  return pairs;
}

/** Above this many steps a text counts as wholly rewritten: the result stays right, only longer. */
const MOST_STEPS = 4000;

/** The lines of two texts against each other (Myers' shortest edit). */
export function lineDiff(before: string, after: string): Row[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const rows: Row[] = [];
  for (let i = 0; i < start; i++) rows.push({ kind: "context", text: a[i] ?? "", old: i + 1, new: i + 1 });
  for (const step of script(a.slice(start, endA), b.slice(start, endB))) {
    const [i, j] = [step.i + start, step.j + start];
    if (step.kind === "context") rows.push({ kind: "context", text: a[i] ?? "", old: i + 1, new: j + 1 });
    else if (step.kind === "removed") rows.push({ kind: "removed", text: a[i] ?? "", old: i + 1, new: null });
    else rows.push({ kind: "added", text: b[j] ?? "", old: null, new: j + 1 });
  }
  for (let k = 0; endA + k < a.length; k++) {
    rows.push({ kind: "context", text: a[endA + k] ?? "", old: endA + k + 1, new: endB + k + 1 });
  }
  return rows;
}

interface Step {
  kind: RowKind;
  i: number;
  j: number;
}

function script(a: string[], b: string[]): Step[] {
  const most = Math.min(a.length + b.length, MOST_STEPS);
  const trace: Map<number, number>[] = [];
  let v = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
      let x = down ? (v.get(k + 1) ?? 0) : (v.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) [x, y] = [x + 1, y + 1];
      v.set(k, x);
      if (x >= a.length && y >= b.length) return walked(trace, a, b, d);
    }
    v = new Map(v);
  }
  return [
    ...a.map((_, i): Step => ({ kind: "removed", i, j: 0 })),
    ...b.map((_, j): Step => ({ kind: "added", i: a.length, j })),
  ];
}

function walked(trace: Map<number, number>[], a: string[], b: string[], last: number): Step[] {
  const steps: Step[] = [];
  let [x, y] = [a.length, b.length];
  for (let d = last; d >= 0; d--) {
    const v = trace[d] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : (v.get(fromK) ?? 0);
    const fromY = d === 0 ? 0 : fromX - fromK;
    while (x > fromX && y > fromY) steps.push({ kind: "context", i: --x, j: --y });
    if (d === 0) break;
    if (down) steps.push({ kind: "added", i: x, j: --y });
    else steps.push({ kind: "removed", i: --x, j: y });
  }
  return steps.reverse();
}

/** Rows with only so many lines around each change; `null` marks omitted lines. */
export function around(rows: Row[], lines: number): (Row | null)[] {
  const near = new Array<boolean>(rows.length).fill(false);
  rows.forEach((row, at) => {
    if (row.kind === "context") return;
    for (let i = Math.max(0, at - lines); i <= Math.min(rows.length - 1, at + lines); i++) near[i] = true;
  });
  const out: (Row | null)[] = [];
  rows.forEach((row, at) => {
    if (near[at]) out.push(row);
    else if (at === 0 || near[at - 1]) out.push(null);
  });
  return out;
}
