//! Requests in flight, and damaged values in shared data.

pub mod damage;

use crate::fake::FakeRequest;

pub fn request(caller: usize) -> FakeRequest {
    FakeRequest::get("/").header("x-device-id", caller.to_string())
}
