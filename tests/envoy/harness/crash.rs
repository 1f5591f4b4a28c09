//! The shipped module, modified to crash on a request with many headers.
//!
//! A few instructions are inserted at the beginning of the function for request headers. Everything
//! else is unchanged.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Envoy, shipped};

/// The number of headers that kills the VM.
const DEADLY: usize = 60;

const IMPORTS: u8 = 2;
const EXPORTS: u8 = 7;
const CODE: u8 = 10;

/// `if headers >= 60 { unreachable }`, for a function with their number as second parameter.
const CRASH: [u8; 9] = [0x20, 1, 0x41, DEADLY as u8, 0x4f, 0x04, 0x40, 0x00, 0x0b];

/// Writes the module into a folder.
pub fn write(folder: &Path) -> PathBuf {
    let path = folder.join("crash.wasm");
    let module = fs::read(shipped::module()).unwrap();
    fs::write(&path, with_crash(&module)).unwrap();
    path
}

impl Envoy {
    /// Sends a request that kills the VM.
    #[track_caller]
    pub fn kill_vm(&self, path: &str) {
        let names: Vec<String> = (0..DEADLY).map(|number| format!("x-{number}")).collect();
        let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let answer = self.get(path, &headers);
        assert!(answer.status == 503 && !answer.refused(), "{answer:?}");
    }
}

fn with_crash(module: &[u8]) -> Vec<u8> {
    let (magic, mut rest) = module.split_at(8);
    let mut out = magic.to_vec();
    let (mut imported, mut target) = (0, None);
    while let Some((&id, after)) = rest.split_first() {
        rest = after;
        let size = number(&mut rest);
        let (section, after) = rest.split_at(size);
        rest = after;
        match id {
            IMPORTS => imported = functions_imported(section),
            EXPORTS => target = exported(section, "proxy_on_request_headers"),
            _ => {}
        }
        let section = match (id, target) {
            (CODE, Some(target)) => changed(section, target - imported),
            _ => section.to_vec(),
        };
        out.push(id);
        leb(section.len(), &mut out);
        out.extend(section);
    }
    out
}

/// The code section with the inserted instructions in one function.
fn changed(mut section: &[u8], target: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let count = number(&mut section);
    leb(count, &mut out);
    for index in 0..count {
        let size = number(&mut section);
        let (mut body, after) = section.split_at(size);
        section = after;
        let mut function = Vec::new();
        if index == target {
            let locals = number(&mut body);
            leb(locals, &mut function);
            for _ in 0..locals {
                leb(number(&mut body), &mut function);
                function.push(byte(&mut body));
            }
            function.extend(CRASH);
        }
        function.extend(body);
        leb(function.len(), &mut out);
        out.extend(function);
    }
    out
}

fn functions_imported(mut section: &[u8]) -> usize {
    let mut functions = 0;
    for _ in 0..number(&mut section) {
        for _module_and_name in 0..2 {
            text(&mut section);
        }
        assert_eq!(byte(&mut section), 0, "the module imports functions only");
        number(&mut section);
        functions += 1;
    }
    functions
}

fn exported(mut section: &[u8], wanted: &str) -> Option<usize> {
    for _ in 0..number(&mut section) {
        let is_wanted = text(&mut section) == wanted.as_bytes();
        let (kind, index) = (byte(&mut section), number(&mut section));
        if is_wanted && kind == 0 {
            return Some(index);
        }
    }
    None
}

fn text<'t>(bytes: &mut &'t [u8]) -> &'t [u8] {
    let length = number(bytes);
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    text
}

fn byte(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().unwrap();
    *bytes = rest;
    *first
}

/// Reads a number in LEB128.
fn number(bytes: &mut &[u8]) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let next = byte(bytes);
        value |= usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            break;
        }
    }
    value
}

fn leb(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
