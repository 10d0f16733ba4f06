import { useTitle } from "../../lib/hooks";
import type { SettingsPage } from "../../router";
import { useIsAdmin } from "../../session";
import { A } from "../../ui/basics";
import { Audit } from "./audit";
import { Browser } from "./browser";
import { People } from "./people";
import { Secrets } from "./secrets";
import { Workers } from "./workers";

const PAGES: { id: SettingsPage; label: string; admin: boolean }[] = [
  { id: "browser", label: "This browser", admin: false },
  { id: "people", label: "Users", admin: true },
  { id: "secrets", label: "Secrets", admin: true },
  { id: "workers", label: "Workers", admin: false },
  { id: "audit", label: "Audit log", admin: true },
];

export default function Settings({ sub }: { sub: SettingsPage }) {
  useTitle("Settings · ralph");
  const admin = useIsAdmin();
  const page = PAGES.find((one) => one.id === sub);
  return (
    <main className="page" id="main">
      <h1>Settings</h1>
      <nav className="tabs" aria-label="Settings">
        {PAGES.filter((one) => admin || !one.admin).map((one) => (
          <A key={one.id} className="tab" href={one.id === "browser" ? "/settings" : `/settings/${one.id}`} aria-current={one.id === sub ? "page" : undefined}>{one.label}</A>
        ))}
      </nav>
      {page?.admin && !admin ? (
        <p className="note note-attention">Only admins can see this.</p>
      ) : sub === "people" ? <People /> : sub === "secrets" ? <Secrets /> : sub === "audit" ? <Audit /> : sub === "workers" ? <Workers /> : <Browser />}
    </main>
  );
}
