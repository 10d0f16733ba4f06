import { useMemo } from "react";
import { pieces } from "../lib/ansi";

/** Text with the colors of a terminal; always text. A search may mark words in it. */
export function Ansi({ text, mark }: { text: string; mark?: string }) {
  const parts = useMemo(() => pieces(text), [text]);
  return (
    <>
      {parts.map((part, at) => (
        <span key={at} className={part.style || undefined}>
          {mark ? <Marked text={part.text} mark={mark} /> : part.text}
        </span>
      ))}
    </>
  );
}

export function Marked({ text, mark }: { text: string; mark: string }) {
  if (!mark) return <>{text}</>;
  const [lower, wanted] = [text.toLowerCase(), mark.toLowerCase()];
  const out = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    out.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  out.push(text.slice(from));
  return <>{out}</>;
}
