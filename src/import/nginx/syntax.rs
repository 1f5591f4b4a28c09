//! The syntax of nginx's configuration.
//!
//! No parser of it in Rust is still developed, so this one reads the tokens itself.

use crate::source::{Origin, SourceText};

#[cfg(test)]
mod tests;

/// Maximum nesting of blocks.
const MAX_DEPTH: usize = 32;

/// Maximum number of directives in a file.
const MOST: usize = 200_000;

/// A directive, with the directives of its block.
#[derive(Debug, Clone)]
pub(crate) struct Directive {
    /// The name and the arguments.
    pub(crate) words: Vec<String>,
    pub(crate) origin: Origin,
    pub(crate) block: Vec<Directive>,
}

impl Directive {
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The directive on one line.
    pub(crate) fn shown(&self) -> String {
        self.words.join(" ")
    }
}

/// A line, and its mistake.
pub(crate) type Fault = (Origin, String);

enum SyntaxToken {
    Word(String),
    Semicolon,
    Open,
    Close,
}

struct Tokens<'t> {
    rest: &'t str,
    line: usize,
}

/// Returns true if a text begins as a configuration of nginx: its first statement ends with `;` or
/// begins a block.
pub(crate) fn is_nginx(text: &str) -> bool {
    let mut tokens = Tokens::new(text);
    let mut words = 0;
    loop {
        match tokens.next() {
            Ok(Some((SyntaxToken::Word(word), _))) => {
                // Keys of YAML and TOML, and the documents of the former.
                let is_other = word.ends_with(':') || word == "=" || word.starts_with(['[', '-']);
                if is_other || words > 100 {
                    return false;
                }
                words += 1;
            }
            Ok(Some((SyntaxToken::Semicolon | SyntaxToken::Open, _))) => return words > 0,
            _ => return false,
        }
    }
}

/// The directives of a text. After a mistake the rest of the text is missing.
pub(crate) fn parse(text: &SourceText) -> (Vec<Directive>, Option<Fault>) {
    let mut tokens = Tokens::new(&text.text);
    let at = |line: usize| Origin { file: text.name.clone(), line };
    // The blocks around the current position, each with its directive.
    let mut stack: Vec<(Directive, Vec<Directive>)> = Vec::new();
    let (mut list, mut words, mut begin) = (Vec::new(), Vec::<String>::new(), 1);
    let mut count = 0;
    let fault = loop {
        let (token, line) = match tokens.next() {
            Ok(Some(token)) => token,
            Ok(None) => {
                let open = stack.last().map(|(directive, _)| directive.origin.line);
                break match (open, words.is_empty()) {
                    (_, false) => Some((at(begin), "this directive has no end; add `;`".into())),
                    (Some(line), true) => Some((at(line), "this block has no end; add `}`".into())),
                    (None, true) => None,
                };
            }
            Err(line) => break Some((at(line), "this text in quotes has no end".into())),
        };
        let directive = |words: &mut Vec<String>| Directive {
            words: std::mem::take(words),
            origin: at(begin),
            block: Vec::new(),
        };
        match token {
            SyntaxToken::Word(word) => {
                if words.is_empty() {
                    begin = line;
                }
                words.push(word);
                continue;
            }
            SyntaxToken::Semicolon if words.is_empty() => continue,
            SyntaxToken::Semicolon => list.push(directive(&mut words)),
            SyntaxToken::Open => {
                let lua = words.first().is_some_and(|name| name.ends_with("_by_lua_block"));
                let own = directive(&mut words);
                if lua {
                    let mut own = own;
                    own.words.push(tokens.skip_block());
                    list.push(own);
                } else if stack.len() == MAX_DEPTH {
                    break Some((at(line), "nested too deeply".into()));
                } else {
                    stack.push((own, std::mem::take(&mut list)));
                }
            }
            SyntaxToken::Close => {
                if !words.is_empty() {
                    break Some((at(begin), "this directive has no end; add `;`".into()));
                }
                let Some((mut own, outer)) = stack.pop() else {
                    break Some((at(line), "found `}` without a block".into()));
                };
                own.block = std::mem::replace(&mut list, outer);
                list.push(own);
            }
        }
        count += 1;
        if count > MOST {
            break Some((at(line), format!("more than {MOST} directives")));
        }
    };
    // The rest of a block without an end.
    while let Some((mut own, outer)) = stack.pop() {
        own.block = std::mem::replace(&mut list, outer);
        list.push(own);
    }
    (list, fault)
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Tokens<'t> {
        Tokens { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    fn take(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        self.line += usize::from(letter == '\n');
        Some(letter)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next token and its line. Fails with the line of quotes without an end.
    fn next(&mut self) -> Result<Option<(SyntaxToken, usize)>, usize> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(letter) if letter.is_ascii_whitespace() => _ = self.take(),
                Some('#') => while self.peek().is_some() && self.take() != Some('\n') {},
                Some(_) => break,
            }
        }
        let line = self.line;
        let token = match self.peek() {
            Some(';') => SyntaxToken::Semicolon,
            Some('{') => SyntaxToken::Open,
            Some('}') => SyntaxToken::Close,
            _ => return self.word().map(|word| Some((SyntaxToken::Word(word), line))),
        };
        _ = self.take();
        Ok(Some((token, line)))
    }

    fn word(&mut self) -> Result<String, usize> {
        let line = self.line;
        let quote = self.peek().filter(|letter| matches!(letter, '"' | '\''));
        if quote.is_some() {
            _ = self.take();
        }
        let mut word = String::new();
        loop {
            let Some(letter) = self.peek() else {
                return if quote.is_some() { Err(line) } else { Ok(word) };
            };
            match quote {
                Some(quote) if letter == quote => {
                    _ = self.take();
                    return Ok(word);
                }
                None if letter.is_ascii_whitespace() || matches!(letter, ';' | '{') => {
                    return Ok(word);
                }
                _ => {}
            }
            _ = self.take();
            match (letter, self.peek()) {
                // Other escapes stay as they are, as in regular expressions.
                ('\\', Some(next @ ('"' | '\'' | '\\' | ';' | ' '))) => {
                    if next == '\\' {
                        word.push('\\');
                    }
                    word.push(next);
                    _ = self.take();
                }
                ('$', Some('{')) if quote.is_none() => {
                    word.push('$');
                    while let Some(letter) = self.take() {
                        word.push(letter);
                        if letter == '}' {
                            break;
                        }
                    }
                }
                _ => word.push(letter),
            }
        }
    }

    /// Returns the text of a block after its `{`.
    fn skip_block(&mut self) -> String {
        let (mut depth, mut text) = (1_usize, String::new());
        while let Some(letter) = self.take() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(letter);
        }
        text
    }
}
