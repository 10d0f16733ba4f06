//! Runs other `ralph` commands.

use super::perform::World;
use crate::msg::Msg;
use ralph_loop_app::AppError;
use ralph_loop_app::steering::own_program;

pub fn run(world: &World, words: &[String], done: &str) -> Result<(), AppError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = own_program::answer(world.env(), &world.folder, &words, &|| false)?;
    let more = ["url", "path", "kept_at"].iter().find_map(|key| answer[*key].as_str());
    world.tell(Msg::Done(match more {
        Some(more) => format!("{done}: {more}"),
        None => done.to_owned(),
    }));
    Ok(())
}
