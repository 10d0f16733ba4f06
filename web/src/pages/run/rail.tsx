import { useMemo } from "react";
import { useRunsList, useUnfinishedToo } from "../../live/runs-list";
import { useWide } from "../../lib/hooks";
import { byAttention } from "../../lib/status";
import { runPath } from "../../router";
import { A, Ago, cx } from "../../ui/basics";
import { StatusMark } from "../../ui/signs";

const QUERY = { sort: "updated", order: "desc" };

/** A narrow, live list of runs next to the open one. */
export function Rail({ current }: { current: string }) {
  return useWide(1360) ? <Inside current={current} /> : null;
}

function Inside({ current }: { current: string }) {
  const list = useRunsList(QUERY);
  const all = useUnfinishedToo(list.rows, QUERY, true);
  const rows = useMemo(() => byAttention(all).slice(0, 60), [all]);
  return (
    <nav className="rail" aria-label="Other runs">
      <ul>
        {rows.map((row) => (
          <li key={row.id}>
            <A href={runPath(row.id)} className={cx("rail-row", row.id === current && "rail-at")} aria-current={row.id === current ? "page" : undefined}>
              <StatusMark status={row.status} wordless />
              <span className="rail-task">{row.task}</span>
              <span className="muted small"><Ago at={row.updated_at} narrow /></span>
            </A>
          </li>
        ))}
      </ul>
    </nav>
  );
}
