//! One mistake each: a stranger must be able to act on what is said.

mod actors;
mod cost;
mod daily;
mod document;
mod entry;
mod hot;
mod operator;
mod plans;
mod redis;
mod remote;
mod response;
mod rule;
mod settings;
mod syntax;
