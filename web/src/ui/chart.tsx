import { useEffect, useRef, useState } from "react";

export interface Series {
  name: string;
  values: (number | null)[];
  tone: string;
}

interface ChartProps {
  title: string;
  labels: string[];
  series: Series[];
  format: (value: number) => string;
  /** `area` stacks its series. */
  kind?: "line" | "bar" | "area";
  max?: number;
  /** Where each value is on the axis; evenly apart by default. */
  places?: number[];
  /** What happened at some values. */
  events?: { at: number; label: string }[];
  /** A level that means something, with its words. */
  mark?: { value: number; label: string };
}

const [H, LEFT, BOTTOM, TOP] = [180, 52, 22, 10];

/** The available width, so that text keeps its size. */
function useWidth() {
  const box = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(480);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.max(200, Math.round(entry.contentRect.width))));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return { box, width };
}

/** A round number at or above `n`, so that the axis reads well. */
export function niceTop(n: number): number {
  if (n <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= n - 1e-9) ?? 10;
  return step * power;
}

/** The index of the value that is nearest to a place. */
function nearest(all: number[], place: number): number {
  return all.reduce((best, one, at) => (Math.abs(one - place) < Math.abs((all[best] ?? 0) - place) ? at : best), 0);
}

/** Indexes of known values, in unbroken runs. */
export function runsOf(values: (number | null)[]): number[][] {
  const runs: number[][] = [];
  values.forEach((value, at) => {
    if (value === null) return;
    const last = runs.at(-1);
    if (last && last.at(-1) === at - 1) last.push(at);
    else runs.push([at]);
  });
  return runs;
}

/** Lines, areas or bars over iterations or days, as SVG, with the numbers in a table for screen readers. */
export function Chart({ title, labels, series, format, kind = "line", max, mark, places, events = [] }: ChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const { box, width: W } = useWidth();
  const known = series.flatMap((s) => s.values).filter((v): v is number => v !== null);
  const stacked = labels.map((_, i) => series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0));
  const top = max ?? niceTop(Math.max(...(kind === "area" ? stacked : known), mark?.value ?? 0));
  const n = Math.max(1, labels.length);
  const inner = W - LEFT - 8;
  const [from, to] = [places?.[0] ?? 0, places?.[n - 1] ?? n - 1];
  const x = (i: number) => LEFT + (kind === "bar" ? ((i + 0.5) * inner) / n : to <= from ? inner / 2 : (((places?.[i] ?? i) - from) * inner) / (to - from));
  const y = (v: number) => TOP + (1 - v / top) * (H - TOP - BOTTOM);
  const every = Math.max(1, Math.ceil(n / Math.max(2, Math.floor(inner / 60))));
  if (known.length === 0) return null;
  return (
    <figure className="chart" ref={box}>
      <figcaption>
        <span>{title}</span>
        <span className="num small muted" aria-hidden>
          {at !== null ? `${labels[at] ?? ""}: ${events.filter((one) => one.at === at).map((one) => `${one.label} · `).join("")}${series.map((s) => `${series.length > 1 ? `${s.name} ` : ""}${s.values[at] === null || s.values[at] === undefined ? "–" : format(s.values[at] ?? 0)}`).join(" · ")}` : " "}
        </span>
      </figcaption>
      <svg
        viewBox={`0 0 ${W} ${H}`}
        role="img"
        aria-label={`${title}; the numbers follow as a table`}
        onPointerLeave={() => setAt(null)}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const px = ((event.clientX - box.left) / box.width) * W - LEFT;
          const i = kind === "bar" ? Math.floor((px / inner) * n) : nearest(labels.map((_, one) => x(one) - LEFT), px);
          setAt(Math.max(0, Math.min(n - 1, i)));
        }}
      >
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line x1={LEFT} x2={W - 8} y1={y(top * share)} y2={y(top * share)} className="chart-grid" />
            <text x={LEFT - 6} y={y(top * share) + 4} textAnchor="end" className="chart-text">{format(top * share)}</text>
          </g>
        ))}
        {mark && <><line x1={LEFT} x2={W - 8} y1={y(mark.value)} y2={y(mark.value)} className="chart-mark" /><text x={LEFT + 4} y={y(mark.value) - 4} className="chart-text">{mark.label}</text></>}
        {events.map(({ at: i, label }) => <g key={`${i}${label}`}><line x1={x(i)} x2={x(i)} y1={TOP} y2={H - BOTTOM} className="chart-event" /><circle cx={x(i)} cy={TOP} r="3.5" className="chart-event-dot"><title>{label}</title></circle></g>)}
        {labels.map((label, i) => ((i % every === 0 && i <= n - 1 - every / 2) || i === n - 1 ? <text key={i} x={x(i)} y={H - 6} textAnchor="middle" className="chart-text">{label}</text> : null))}
        {series.map((s, which) =>
          kind === "area" ? (
            <g key={s.name} className={`tone-${s.tone}`}>
              {runsOf(s.values).map((run) => {
                const edge = (i: number, upTo: number) => `${x(i)},${y(series.slice(0, upTo).reduce((sum, one) => sum + (one.values[i] ?? 0), 0))}`;
                return (
                  <g key={run[0]}>
                    <polygon fill="currentColor" opacity="0.18" points={[...run.map((i) => edge(i, which + 1)), ...[...run].reverse().map((i) => edge(i, which))].join(" ")} />
                    <polyline fill="none" stroke="currentColor" strokeWidth="1.75" strokeLinejoin="round" points={run.map((i) => edge(i, which + 1)).join(" ")} />
                    {run.map((i) => (n < 40 || i === at ? <circle key={i} cx={x(i)} cy={y(series.slice(0, which + 1).reduce((sum, one) => sum + (one.values[i] ?? 0), 0))} r={i === at ? 4 : 2.25} fill="currentColor" /> : null))}
                  </g>
                );
              })}
            </g>
          ) : kind === "bar" ? (
            <g key={s.name} className={`tone-${s.tone}`}>
              {s.values.map((v, i) => (v === null ? null : <rect key={i} x={x(i) - Math.min(14, (inner / n) * 0.35)} width={Math.min(28, (inner / n) * 0.7)} y={y(v)} height={Math.max(0, y(0) - y(v))} rx="2" fill="currentColor" opacity={at === null || at === i ? 0.9 : 0.5} />))}
            </g>
          ) : (
            <g key={s.name} className={`tone-${s.tone}`}>
              <polyline fill="none" stroke="currentColor" strokeWidth="1.75" strokeLinejoin="round" points={s.values.map((v, i) => (v === null ? null : `${x(i)},${y(v)}`)).filter(Boolean).join(" ")} />
              {s.values.map((v, i) => (v !== null && (n < 40 || i === at) ? <circle key={i} cx={x(i)} cy={y(v)} r={i === at ? 4 : 2.25} fill="currentColor" /> : null))}
            </g>
          ),
        )}
      </svg>
      {series.length > 1 && <p className="legend small">{series.map((s) => <span key={s.name} className={`tone-${s.tone}`}>■ <span className="legend-word">{s.name}</span></span>)}</p>}
      <table className="sr-only">
        <caption>{title}</caption>
        <thead><tr><th scope="col">at</th>{series.map((s) => <th scope="col" key={s.name}>{s.name}</th>)}</tr></thead>
        <tbody>{labels.map((label, i) => <tr key={i}><th scope="row">{label}</th>{series.map((s) => <td key={s.name}>{s.values[i] === null || s.values[i] === undefined ? "unknown" : format(s.values[i] ?? 0)}</td>)}</tr>)}</tbody>
      </table>
    </figure>
  );
}
