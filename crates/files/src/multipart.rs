//! Forms with a file (RFC 7578), read while they arrive. Small fields come whole, the file in pieces.

use bytes::{Bytes, BytesMut};
use kernel::{Code, Error, Result};

/// Of a part's headers, and of what stands before the first part.
pub(crate) const LARGEST_HEAD: usize = 8 * 1024;

/// What a part says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartHead {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) content_type: Option<String>,
}

/// What comes next in a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing before more bytes have arrived.
    More,
    Part(PartHead),
    Data(Bytes),
    /// The form is over.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first part.
    Preamble,
    Head,
    Data,
    /// Behind a boundary: another part, or the end.
    Boundary,
    Done,
}

pub(crate) struct FormReader {
    /// `\r\n--boundary`.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: State,
}

impl FormReader {
    /// From the request's `Content-Type`; 415 for what is no such form.
    pub(crate) fn of(content_type: Option<&str>) -> Result<Self> {
        let not_a_form = || Error::new(Code::UnsupportedMediaType, "Send the form as `multipart/form-data`.");
        let content_type = content_type.ok_or_else(not_a_form)?;
        let (essence, parameters) = content_type.split_once(';').ok_or_else(not_a_form)?;
        if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
            return Err(not_a_form());
        }
        let boundary = parameter(parameters, "boundary").filter(|boundary| (1..=70).contains(&boundary.len()));
        let boundary = boundary.ok_or_else(|| malformed("it names no boundary"))?;
        // The first boundary may stand at the very beginning.
        Ok(Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            buffer: BytesMut::from(&b"\r\n"[..]),
            state: State::Preamble,
        })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How much of the form is in memory.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn step(&mut self) -> Result<Step> {
        loop {
            match self.state {
                State::Preamble => match self.bounded(&self.delimiter) {
                    Bounded::Until(end) => {
                        drop(self.buffer.split_to(end));
                        self.state = State::Boundary;
                    }
                    Bounded::More => return Ok(Step::More),
                    Bounded::TooLong => return Err(malformed("it does not begin with its boundary")),
                },
                State::Boundary => {
                    if self.buffer.len() < 2 {
                        return Ok(Step::More);
                    }
                    let end = self.buffer.split_to(2);
                    self.state = match &end[..] {
                        b"\r\n" => State::Head,
                        b"--" => State::Done,
                        _ => return Err(malformed("a boundary does not end its line")),
                    };
                }
                State::Head => match self.bounded(b"\r\n\r\n") {
                    Bounded::Until(end) => {
                        let head = self.buffer.split_to(end);
                        self.state = State::Data;
                        return Ok(Step::Part(read_head(&head)?));
                    }
                    Bounded::More => return Ok(Step::More),
                    Bounded::TooLong => return Err(malformed("the headers of a part are too long")),
                },
                State::Data => return Ok(self.data()),
                State::Done => return Ok(Step::End),
            }
        }
    }

    /// Looks for what ends something short. The same wherever the network cuts: what arrived beyond the bound is not looked at.
    fn bounded(&self, end: &[u8]) -> Bounded {
        match find(&self.buffer[..self.buffer.len().min(LARGEST_HEAD)], end) {
            Some(at) => Bounded::Until(at + end.len()),
            None if self.buffer.len() < LARGEST_HEAD => Bounded::More,
            None => Bounded::TooLong,
        }
    }

    /// What surely belongs to the part.
    fn data(&mut self) -> Step {
        if let Some(at) = find(&self.buffer, &self.delimiter) {
            if at > 0 {
                return Step::Data(self.buffer.split_to(at).freeze());
            }
            drop(self.buffer.split_to(self.delimiter.len()));
            self.state = State::Boundary;
            // The next call says what comes behind the boundary.
            return Step::Data(Bytes::new());
        }
        let sure = self.buffer.len().saturating_sub(self.delimiter.len());
        if sure == 0 { Step::More } else { Step::Data(self.buffer.split_to(sure).freeze()) }
    }
}

/// How far something goes that may not be long.
enum Bounded {
    Until(usize),
    More,
    TooLong,
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == first) {
        at += next;
        if bytes.len() - at < wanted.len() {
            return None;
        }
        if &bytes[at..at + wanted.len()] == wanted {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn read_head(head: &[u8]) -> Result<PartHead> {
    let text = std::str::from_utf8(head).map_err(|_| malformed("the headers of a part are not UTF-8"))?;
    let mut read = PartHead::default();
    let mut named = false;
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header of a part has no colon"))?;
        if name.trim().eq_ignore_ascii_case("content-disposition") {
            let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
            if !kind.trim().eq_ignore_ascii_case("form-data") {
                return Err(malformed("a part is not form-data"));
            }
            // Readers that disagree about which one counts would see two different forms.
            if named {
                return Err(malformed("a part is named twice"));
            }
            read.name = parameter(parameters, "name").ok_or_else(|| malformed("a part has no name"))?;
            read.is_file = parameter(parameters, "filename").is_some() || parameters.contains("filename*=");
            named = true;
        } else if name.trim().eq_ignore_ascii_case("content-type") {
            read.content_type = Some(value.trim().to_owned());
        }
    }
    if named { Ok(read) } else { Err(malformed("a part has no name")) }
}

/// The value under a name in `; a=b; c="d"`.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim().trim_start_matches(';').trim();
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, left) = quoted.split_once('"')?;
                (value, left)
            }
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim(), &after[end..])
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.to_owned());
        }
        rest = left.trim_start().trim_start_matches(';');
    }
    None
}

pub(crate) fn malformed(problem: &str) -> Error {
    Error::new(Code::MalformedRequest, format!("The form cannot be read: {problem}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"AaB03x\"";

    fn read(body: &[u8], step: usize) -> Result<Vec<(PartHead, Vec<u8>)>> {
        let mut reader = FormReader::of(Some(TYPE))?;
        let (mut parts, mut chunks) = (Vec::<(PartHead, Vec<u8>)>::new(), body.chunks(step.max(1)));
        loop {
            match reader.step()? {
                Step::More => match chunks.next() {
                    Some(bytes) => reader.push(bytes),
                    None => return Err(malformed("it ends too early")),
                },
                Step::Part(head) => parts.push((head, Vec::new())),
                Step::Data(data) => parts.last_mut().expect("data belongs to a part").1.extend_from_slice(&data),
                Step::End => return Ok(parts),
            }
        }
    }

    fn form(file: &[u8]) -> Vec<u8> {
        let mut body = b"--AaB03x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk1\r\n--AaB03x\r\n\
            content-disposition: form-data; name=\"file\"; filename=\"a;b.txt\"\r\nContent-Type: text/plain\r\n\r\n"
            .to_vec();
        body.extend_from_slice(file);
        body.extend_from_slice(b"\r\n--AaB03x--\r\n");
        body
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for (kind, code) in [
            (None, Code::UnsupportedMediaType),
            (Some("application/json"), Code::UnsupportedMediaType),
            (Some("text/plain; boundary=x"), Code::UnsupportedMediaType),
            (Some("multipart/form-data; charset=x"), Code::MalformedRequest),
        ] {
            assert_eq!(FormReader::of(kind).err().map(|error| error.code()), Some(code), "{kind:?}");
        }
        for body in
            ["", "--AaB03x", "--AaB03x\r\n\r\nx", "--AaB03xx\r\n", "--AaB03x\r\nContent-Disposition: form-data\r\n\r\n"]
        {
            assert!(read(body.as_bytes(), 3).is_err(), "{body}");
        }
        assert!(read("x".repeat(20_000).as_bytes(), 100).is_err());
        assert!(read(format!("--AaB03x\r\nA: {}", "x".repeat(20_000)).as_bytes(), 100).is_err());
    }

    proptest! {
        /// Where the network cuts makes no difference, and a file that looks like a boundary is none.
        #[test]
        fn fields_and_files_come_out_as_they_went_in(
            file in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'A'), any::<u8>()], 0..60),
            step in 1_usize..40,
        ) {
            prop_assume!(find(&file, b"\r\n--AaB03x").is_none());
            let parts = read(&form(&file), step).expect("it is a form");
            prop_assert_eq!(parts.len(), 2);
            prop_assert_eq!((parts[0].0.name.as_str(), parts[0].0.is_file, &parts[0].1[..]), ("key", false, &b"k1"[..]));
            prop_assert_eq!((parts[1].0.name.as_str(), parts[1].0.is_file, &parts[1].1), ("file", true, &file));
            prop_assert_eq!(parts[1].0.content_type.as_deref(), Some("text/plain"));
        }
    }
}
