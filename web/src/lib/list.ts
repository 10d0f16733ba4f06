// The lines of the runs list: groups by attention, and the runs of a race behind one line.

import type { Race, RunRow } from "../api/types";
import { basename } from "./format";
import { isActive, lookOf, proofWords } from "./status";

export type ListItem =
  | { what: "group"; key: string; label: string; count: number }
  | { what: "run"; key: string; row: RunRow; racer?: string }
  | { what: "race"; key: string; race: Race; rows: RunRow[]; open: boolean };

const SECTIONS: { label: string; has: (status: string) => boolean }[] = [
  { label: "Needs you", has: (status) => status === "needs you" },
  { label: "Active", has: isActive },
  { label: "Finished", has: () => true },
];

function sectionOf(rows: RunRow[]): number {
  return Math.min(...rows.map((row) => SECTIONS.findIndex((section) => section.has(row.status))));
}

/** The most urgent of several runs. */
export function mostUrgent(rows: RunRow[]): RunRow | undefined {
  return [...rows].sort((a, b) => lookOf(a.status).rank - lookOf(b.status).rank)[0];
}

/** Rows as lines of the list, in their order within each group. A race takes the place of its first run. */
export function listItems(rows: RunRow[], races: Race[], open: ReadonlySet<string>, grouped: boolean): ListItem[] {
  const raceOf = new Map(races.filter((race) => race.runs.length > 1).flatMap((race) => race.runs.map((run) => [run.run_id, race] as const)));
  const members = new Map<string, RunRow[]>();
  for (const row of rows) {
    const race = raceOf.get(row.id);
    if (race) members.set(race.id, [...(members.get(race.id) ?? []), row]);
  }
  const sections: ListItem[][] = SECTIONS.map(() => []);
  const seen = new Set<string>();
  for (const row of rows) {
    const race = raceOf.get(row.id);
    const own = (race && members.get(race.id)) ?? [row];
    const into = sections[grouped ? sectionOf(own) : 0] as ListItem[];
    if (!race) into.push({ what: "run", key: row.id, row });
    if (!race || seen.has(race.id)) continue;
    seen.add(race.id);
    into.push({ what: "race", key: `race ${race.id}`, race, rows: own, open: open.has(race.id) });
    if (!open.has(race.id)) continue;
    for (const { run_id, name } of race.runs) {
      const member = own.find((one) => one.id === run_id);
      if (member) into.push({ what: "run", key: run_id, row: member, racer: name });
    }
  }
  if (!grouped) return sections[0] ?? [];
  return sections.flatMap((items, at) => {
    const label = SECTIONS[at]?.label ?? "";
    const count = items.filter((item) => item.what !== "run" || item.racer === undefined).length;
    return items.length === 0 ? [] : [{ what: "group" as const, key: label, label, count }, ...items];
  });
}

/** Unfinished, without a process. */
export function notRunning(row: RunRow): boolean {
  return row.driven === false && isActive(row.status) && row.status !== "needs you" && row.status !== "queued";
}

/** The one thing to do with a run from a list, if there is one. */
export function rowAction(row: RunRow): "answer" | "resume" | "take" | "why" | null {
  if (row.status === "needs you") return "answer";
  if (row.status === "paused" || notRunning(row)) return "resume";
  if (row.status === "done") return "take";
  return row.status === "failed" ? "why" : null;
}

/** What a row says in its last column. */
export function rowNow(row: RunRow): string {
  if (row.problem) return row.problem;
  if (row.queued) return `position ${row.queued} in the queue`;
  const proof = row.status === "done" ? proofWords(row.proof_level) : null;
  return proof ?? (row.now ?? "").replaceAll("`", "");
}

/** The last folder of a repo, with its parent if two repos share that name. */
export function repoNames(rows: RunRow[]): (repo: string) => string {
  const paths = new Map<string, Set<string>>();
  for (const { repo } of rows) paths.set(basename(repo), (paths.get(basename(repo)) ?? new Set()).add(repo));
  return (repo) => ((paths.get(basename(repo))?.size ?? 0) > 1 ? repo.split("/").filter(Boolean).slice(-2).join("/") : basename(repo));
}
