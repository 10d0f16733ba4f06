//! An iteration's transcript, read from its recorded output: the same records as live output.

use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::trust::repo_file;
use ralph_loop_agents::cli::{TranscriptEntry, TranscriptReader};
use ralph_loop_journal::JournalError;
use ralph_loop_journal::live::LivePayload;
use ralph_loop_protocol::money::receipt::Receipt;
use ralph_loop_task::config::{AgentKind, OutputFormat};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

/// Bytes read from the end of an output.
const OUTPUT_MAX: u64 = 16 * 1024 * 1024;

/// The format of an iteration's output.
pub fn format(facts: &RunSnapshot, number: u32) -> OutputFormat {
    let state = &facts.state;
    let receipt = || {
        let path = facts.entry.run_dir().iteration(number).join("receipt.json");
        let receipt: Receipt = serde_json::from_slice(&repo_file::read_record(&path).ok()?).ok()?;
        Some(receipt.agent)
    };
    let current = state.iterations.current.as_ref().filter(|current| current.iteration == number);
    let name = current.map(|current| current.agent.clone()).or_else(receipt);
    let agents = &state.spec.settings.agents;
    let agent = agents.iter().find(|agent| name.as_ref() == Some(&agent.name));
    let agent = agent.filter(|agent| agent.kind == AgentKind::Cli);
    agent.map_or(OutputFormat::Text, |agent| agent.output_format)
}

/// The transcript of an iteration, complete or so far. Of a huge output, only the end.
pub fn read(facts: &RunSnapshot, number: u32) -> Result<Vec<LivePayload>, AppError> {
    let path = facts.entry.run_dir().iteration(number).join("output.log");
    let fail = |e| AppError::from(JournalError::file("read", &path, e));
    let mut file = BufReader::new(repo_file::open_record(&path).map_err(fail)?);
    let size = file.get_ref().metadata().map_err(fail)?.len();
    let mut records = Vec::new();
    if size > OUTPUT_MAX {
        records.push(LivePayload::LeftOut { bytes: size - OUTPUT_MAX });
        file.seek(SeekFrom::Start(size - OUTPUT_MAX)).map_err(fail)?;
        file.skip_until(b'\n').map_err(fail)?;
    }
    let mut reader = TranscriptReader::new(format(facts, number), facts.state.spec.home());
    let mut bytes = Vec::new();
    file.take(OUTPUT_MAX).read_to_end(&mut bytes).map_err(fail)?;
    records.extend(reader.push(&bytes).into_iter().map(record));
    records.extend(reader.finish().into_iter().map(record));
    Ok(records)
}

fn record(entry: TranscriptEntry) -> LivePayload {
    match entry {
        TranscriptEntry::Said(text) => LivePayload::Text { text },
        TranscriptEntry::Line(line) => LivePayload::Stderr { text: format!("{line}\n") },
        TranscriptEntry::Did(text) => LivePayload::Activity { text },
        TranscriptEntry::Result { ok, text } => LivePayload::ToolResult { ok, text },
    }
}
