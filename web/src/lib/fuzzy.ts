/** How well `text` answers `query`: every letter in order, higher is better, 0 is not at all. */
export function score(query: string, text: string): number {
  const [q, t] = [query.toLowerCase().replace(/\s+/g, ""), text.toLowerCase()];
  if (q === "") return 1;
  let [at, total, streak] = [0, 0, 0];
  for (let i = 0; i < t.length && at < q.length; i++) {
    if (t[i] !== q[at]) {
      streak = 0;
      continue;
    }
    const begins = i === 0 || /[\s/_.:-]/.test(t[i - 1] ?? "");
    streak++;
    total += streak + (begins ? 3 : 0);
    at++;
  }
  return at === q.length ? total / (1 + t.length / 200) : 0;
}
