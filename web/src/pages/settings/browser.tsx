import { useState } from "react";
import { allowNotifications, notifications } from "../../lib/notify";
import { setTheme, useTheme, type Theme } from "../../lib/theme";
import { useMe } from "../../session";
import { Button, cx, Section } from "../../ui/basics";

const THEMES: [Theme, string][] = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];

/** What this browser alone remembers. */
export function Browser() {
  const me = useMe();
  const theme = useTheme();
  const [allowed, setAllowed] = useState(notifications());
  return (
    <div className="pane narrow">
      <Section title="You">
        <p>{me.name}, {me.role} <span className="muted">· ralph {me.version}</span></p>
      </Section>
      <Section title="Theme">
        <div className="chips" role="group" aria-label="Theme">
          {THEMES.map(([id, label]) => <button key={id} type="button" className={cx("chip", theme === id && "chip-on")} aria-pressed={theme === id} onClick={() => setTheme(id)}>{label}</button>)}
        </div>
      </Section>
      <Section title="Notifications">
        <p className="muted">This browser tells you when a run needs you, is done, or has failed, while the page is open.</p>
        {allowed === "impossible" && <p>This browser has no notifications.</p>}
        {allowed === "denied" && <p className="tone-attention">The browser refuses them for this page. Its settings of the site can allow them.</p>}
        {(allowed === "on" || allowed === "off") && (
          <Button onClick={() => void allowNotifications(allowed === "off").then(setAllowed)} aria-pressed={allowed === "on"}>{allowed === "on" ? "Turn off" : "Turn on"}</Button>
        )}
      </Section>
      <Section title="For programs">
        <p className="muted">Everything on this page goes over the same interface: <a href="/api/docs" target="_blank" rel="noopener noreferrer">its description</a>.</p>
      </Section>
    </div>
  );
}
