//! Headers of a response.

#[cfg(test)]
mod tests;

/// Names and values, in the order in which they were added. One text has all of them, so that no
/// header costs an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    /// Every name and every value, each followed by NUL.
    texts: String,
    /// The length of each name, and of its value, as the bytes that proxy-wasm takes.
    lengths: Vec<[[u8; 4]; 2]>,
}

impl Headers {
    /// No headers, with room for this number of them, and of bytes in their names and values.
    #[must_use]
    pub fn with_capacity(number: usize, bytes: usize) -> Headers {
        let texts = String::with_capacity(bytes + 2 * number);
        Headers { texts, lengths: Vec::with_capacity(number) }
    }

    /// Adds a header.
    pub fn push(&mut self, name: &str, value: &str) {
        self.texts.push_str(name);
        self.texts.push('\0');
        self.texts.push_str(value);
        self.texts.push('\0');
        self.lengths.push(lengths(name.len(), value.len()));
    }

    /// Adds a header whose value `write` appends to the text. An empty value adds none.
    pub fn write(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        let start = self.texts.len();
        self.texts.push_str(name);
        self.texts.push('\0');
        let value = self.texts.len();
        write(&mut self.texts);
        let length = self.texts.len() - value;
        if length == 0 {
            return self.texts.truncate(start);
        }
        self.texts.push('\0');
        self.lengths.push(lengths(name.len(), length));
    }

    /// The value of the first header with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Every name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &*self.texts;
        self.lengths.iter().map(move |lengths| {
            let [name, value] = lengths.map(|length| {
                let length = u32::from_le_bytes(length) as usize;
                let (text, more) = rest.split_at_checked(length).unwrap_or_default();
                rest = more.get(1..).unwrap_or_default();
                text
            });
            (name, value)
        })
    }

    /// The length of each name and of its value, in 32 bits, little-endian; every name and every value, each followed by NUL.
    #[must_use]
    pub fn parts(&self) -> (&[[[u8; 4]; 2]], &str) {
        (&self.lengths, &self.texts)
    }
}

fn lengths(name: usize, value: usize) -> [[u8; 4]; 2] {
    [name, value].map(|length| (length as u32).to_le_bytes())
}

impl<'a> FromIterator<(&'a str, &'a str)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Headers {
        let mut headers = Headers::default();
        pairs.into_iter().for_each(|(name, value)| headers.push(name, value));
        headers
    }
}
