//! MessagePack, the format of numbers for the script, because Lua parses it much faster than text.

/// A growing array.
#[derive(Default)]
pub(super) struct Array {
    length: u32,
    bytes: Vec<u8>,
}

impl Array {
    /// Adds a number.
    pub(super) fn number(&mut self, number: i64) {
        self.length += 1;
        self.write(number);
    }

    fn write(&mut self, number: i64) {
        if let Ok(short @ 0..=127) = u8::try_from(number) {
            self.bytes.push(short);
        } else if let Ok(short) = u32::try_from(number) {
            self.bytes.push(0xce);
            self.bytes.extend(short.to_be_bytes());
        } else {
            self.bytes.push(0xd3);
            self.bytes.extend(number.to_be_bytes());
        }
    }

    /// Adds a non-negative number.
    pub(super) fn count(&mut self, number: u64) {
        self.number(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Adds a list of at most 15 numbers.
    pub(super) fn list(&mut self, numbers: &[i64]) {
        self.bytes.push(0x90 | numbers.len() as u8);
        numbers.iter().for_each(|number| self.write(*number));
        self.length += 1;
    }

    /// Adds a string of at most 31 bytes.
    pub(super) fn word(&mut self, word: &[u8]) {
        self.length += 1;
        self.bytes.push(0xa0 | word.len() as u8);
        self.bytes.extend(word);
    }

    /// The encoded array.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut out = vec![0xdd];
        out.extend(self.length.to_be_bytes());
        out.extend(self.bytes);
        out
    }
}
