import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api/calls";
import type { RunRow } from "../api/types";
import { basename } from "../lib/format";
import { score, wordsScore } from "../lib/fuzzy";
import { useSettled } from "../lib/hooks";
import { bindings } from "../lib/keys";
import { lookOf } from "../lib/status";
import { useRunsLive } from "../live/list-store";
import { go, runPath } from "../router";
import { cx } from "./basics";
import { Dialog } from "./dialog";

interface Item {
  key: string;
  label: string;
  hint: string;
  sign?: string;
  run: () => void;
}

/** Search over pages, runs and commands. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { rows } = useRunsLive();
  const [found, setFound] = useState<RunRow[]>([]);
  const settled = useSettled(text, 200);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    if (settled.trim().length < 2) return setFound([]);
    const stop = new AbortController();
    api.runs({ q: settled.trim(), limit: 20 }, stop.signal).then((page) => setFound(page.runs), () => null);
    return () => stop.abort();
  }, [settled]);
  const items = useMemo(() => {
    const pages: Item[] = [
      { key: "p/", label: "All runs", hint: "page", run: () => go("/") },
      { key: "p/board", label: "Board", hint: "page", run: () => go("/board") },
      { key: "p/new", label: "New run", hint: "page", run: () => go("/new") },
      { key: "p/costs", label: "Costs", hint: "page", run: () => go("/costs") },
      { key: "p/settings", label: "Settings", hint: "page", run: () => go("/settings") },
    ];
    const here: Item[] = bindings()
      .filter((b) => b.group === "run" && !/^\d$/.test(b.keys))
      .map((b) => ({ key: `k${b.keys}`, label: b.what, hint: b.keys, run: b.run }));
    const tabs: Item[] = bindings().filter((b) => b.group === "run" && /^\d$/.test(b.keys)).map((b) => ({ key: `k${b.keys}`, label: b.what, hint: b.keys, run: b.run }));
    const known = new Map<string, RunRow>([...rows].slice(-500));
    for (const row of found) known.set(row.id, row);
    const runs: Item[] = [...known.values()].map((row) => ({ key: row.id, label: row.task, hint: `${row.status} · ${basename(row.repo)}`, sign: lookOf(row.status).sign, run: () => go(runPath(row.id)) }));
    const wanted = text.trim();
    const all = [...here, ...tabs, ...pages, ...runs.reverse()];
    if (wanted === "") return all.slice(0, 40);
    return all
      .map((item) => ({ item, rank: Math.max(score(wanted, item.label), wordsScore(wanted, `${item.label} ${item.hint}`) / 3) }))
      .filter((one) => one.rank > 0)
      .sort((a, b) => b.rank - a.rank)
      .slice(0, 40)
      .map((one) => one.item);
  }, [rows, found, text]);
  useEffect(() => setAt(0), [text]);
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const choose = (item: Item | undefined) => {
    if (!item) return;
    onClose();
    // The dialog must be gone before what was chosen opens another one.
    setTimeout(item.run, 0);
  };
  return (
    <Dialog title="Search and commands" onClose={onClose} className="palette">
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={items[at] ? `palette-${at}` : undefined}
        aria-label="Search and commands"
        value={text}
        placeholder="Search runs, pages and commands"
        onChange={(e) => setText(e.target.value)}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") (e.preventDefault(), setAt(Math.min(items.length - 1, at + 1)));
          if (e.key === "ArrowUp") (e.preventDefault(), setAt(Math.max(0, at - 1)));
          if (e.key === "Enter") (e.preventDefault(), choose(items[at]));
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {items.map((item, n) => (
          <li key={item.key} id={`palette-${n}`} role="option" aria-selected={n === at} className={cx("palette-item", n === at && "palette-at")} onPointerMove={() => setAt(n)} onClick={() => choose(item)}>
            <span className="sign muted" aria-hidden>{item.sign ?? "›"}</span>
            <span className="palette-label">{item.label}</span>
            <span className="muted small">{item.hint}</span>
          </li>
        ))}
        {items.length === 0 && <li className="muted palette-item" role="option" aria-selected="false">No matches</li>}
      </ul>
    </Dialog>
  );
}
