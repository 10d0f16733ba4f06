import { useState } from "react";
import { api } from "../../api/calls";
import { asProblem } from "../../api/client";
import { bytes } from "../../lib/format";
import { useLoad } from "../../lib/hooks";
import { Ago, Button, Copy, Empty, Out, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { useRunHere } from "./context";

/** The sandbox: isolation, network, previews, screenshots and files. */
export default function SandboxTab() {
  const { id, view } = useRunHere();
  const box = useLoad((signal) => api.sandbox(id, signal), [id, view.status, view.iterations]);
  const [picture, setPicture] = useState<string | null>(null);
  if (box.problem && !box.data) return <ProblemNote problem={box.problem} retry={box.reload} />;
  if (!box.data) return <Skeleton lines={8} />;
  const s = box.data;
  const facts: [string, React.ReactNode][] = [
    ["sandbox", s.provider ?? "local"],
    ["isolation", s.isolation ?? "unknown"],
    ["network", s.network ?? null],
    ["workspace", s.place ?? null],
    ["image", s.image ?? null],
    ["resources", s.resources ? resourceWords(s.resources) : null],
    ["folder", <span className="mono" key="f">{s.workspace ?? view.workspace} <Copy text={s.workspace ?? view.workspace} label="the folder" /></span>],
    ["process", s.driver ? <>pid {s.driver.pid}{s.driver.since && <>, since <Ago at={s.driver.since} /></>}</> : "not running"],
  ];
  return (
    <div className="pane">
      <Section title="State">
        <dl className="facts">{facts.filter(([, value]) => value !== null).map(([name, value]) => <div key={name}><dt className="muted">{name}</dt><dd>{value}</dd></div>)}</dl>
        {(s.sandboxes ?? []).map((one) => <p key={one.id} className="small">{one.provider} <span className="mono">{one.id}</span> <Copy text={one.id} label="the sandbox's id" /> {one.rests ? "stopped" : "running"}</p>)}
      </Section>
      <Section title="Previews">
        {(s.previews?.length ?? 0) === 0 ? <p className="muted">No preview: nothing listens on a port</p> : (
          <ul className="plain-list">{s.previews?.map((one) => <li key={one.port}>port {one.port}: <Out href={one.url}>{one.url}</Out></li>)}</ul>
        )}
      </Section>
      {(s.refused?.length ?? 0) > 0 && (
        <Section title="Blocked hosts"><ul className="plain-list">{s.refused?.map((one) => <li key={one} className="mono">{one}</li>)}</ul></Section>
      )}
      <Section title="Screenshots">
        {(s.screenshots?.length ?? 0) === 0 ? <p className="muted">No screenshots</p> : (
          <ul className="shots">
            {s.screenshots?.map((name) => (
              <li key={name}><button type="button" className="shot" onClick={() => setPicture(name)}><img src={api.artifactUrl(id, name)} alt={`Screenshot ${name}`} loading="lazy" /><span className="small mono">{name}</span></button></li>
            ))}
          </ul>
        )}
      </Section>
      <Files />
      {picture && <Dialog wide title={picture} onClose={() => setPicture(null)}><img className="shot-large" src={api.artifactUrl(id, picture)} alt={`Screenshot ${picture}`} /></Dialog>}
    </div>
  );
}

function resourceWords(resources: Record<string, unknown>): string {
  const words = Object.entries(resources).filter(([, value]) => value !== null && value !== undefined).map(([key, value]) => `${String(value)} ${key.replaceAll("_", " ")}`);
  return words.join(", ") || "default";
}

/** The files of the workspace. */
function Files() {
  const { id } = useRunHere();
  const [path, setPath] = useState("");
  const [open, setOpen] = useState<{ path: string; text: string } | null>(null);
  const list = useLoad(() => api.files(id, path), [id, path]);
  const join = (name: string) => (path ? `${path}/${name}` : name);
  const look = async (name: string) => {
    const full = join(name);
    try {
      const file = await api.file(id, full);
      setOpen({ path: full, text: file.text + (file.cut ? "\n… (cut)" : "") });
    } catch (error) {
      const said = asProblem(error);
      setOpen({ path: full, text: [said.title, said.detail, said.hint].filter(Boolean).join("\n") });
    }
  };
  return (
    <Section title="Files" aside={<span className="mono small">/{path}</span>}>
      {list.problem && <ProblemNote problem={list.problem} retry={list.reload} />}
      {list.data?.entries.length === 0 && <Empty title="Empty folder" />}
      <ul className="files mono small">
        {path && <li><button type="button" className="link" onClick={() => setPath(path.split("/").slice(0, -1).join("/"))}>..</button></li>}
        {list.data?.entries.map((one) => (
          <li key={one.name}>
            <button type="button" className="link" disabled={one.kind === "link"} onClick={() => (one.kind === "folder" ? setPath(join(one.name)) : void look(one.name))}>{one.name}{one.kind === "folder" ? "/" : ""}</button>
            <span className="muted num">{one.kind === "file" && one.size != null ? bytes(one.size) : one.kind === "link" ? "link" : ""}</span>
          </li>
        ))}
      </ul>
      {open && (
        <Dialog wide title={open.path} onClose={() => setOpen(null)}>
          <pre className="evidence evidence-file" tabIndex={0}>{open.text}</pre>
          <footer className="dialog-foot"><Button onClick={() => setOpen(null)}>Close</Button></footer>
        </Dialog>
      )}
    </Section>
  );
}
