//! Runs other `ralph` commands.

use super::perform::World;
use crate::msg::Msg;
use ralph_loop_app::AppError;
use ralph_loop_app::steering::own_program;
use ralph_loop_protocol::display::text::{count, one_line};

pub fn run(world: &World, words: &[String], done: &str) -> Result<(), AppError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = own_program::answer(world.env(), &world.folder, &words, &|| false)?;
    if let ["publish", run, ..] = words.as_slice() {
        // A push may have worked where the pull request didn't.
        let view = world.app.facts(&world.folder, Some(*run))?.view();
        let Some(pr) = view.pr else {
            let fix = format!("`ralph publish {run}` shows more");
            return Err(AppError::usage("no pull request was opened").cause(view.now).hint(fix));
        };
        world.tell(Msg::Done(format!("{done}: {}", one_line(&pr.url, 300))));
        return Ok(());
    }
    let more = ["url", "path", "kept_at"].iter().find_map(|key| answer[*key].as_str());
    let merged = answer["merged"].as_array().map_or(0, Vec::len);
    world.tell(Msg::Done(match more {
        _ if answer["already_there"] == true => "it is there already; nothing was changed".to_owned(),
        Some(more) => format!("{done}: {more}"),
        None if merged > 0 => {
            format!("{done}; merged with your edits, untested together: {}", count(merged, "file"))
        }
        None => done.to_owned(),
    }));
    Ok(())
}
