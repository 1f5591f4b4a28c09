//! Requests in flight, and values in shared data that no worker wrote.

pub mod spoiled;

use crate::fake::FakeRequest;

pub fn request(caller: usize) -> FakeRequest {
    FakeRequest::get("/").header("x-device-id", caller.to_string())
}
