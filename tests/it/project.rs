//! Files of the project: its sources, and the pages of its book.

mod pages;
mod pictures;
mod sources;
