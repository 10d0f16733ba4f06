use super::forms::base64;
use super::*;
use proptest::prelude::*;

const SECRET: &str = "s3cr3t/Value+42xyz";

fn redactor() -> Redactor {
    Redactor::new([("MY_TOKEN", SECRET)])
}

fn shown(text: &str) -> String {
    redactor().text(text).into_owned()
}

#[test]
fn a_known_value_is_hidden_in_every_form() {
    assert_eq!(shown(&format!("token={SECRET};")), "token=[redacted:MY_TOKEN];");
    assert_eq!(shown("a%20s3cr3t%2FValue%2B42xyz"), "a%20[redacted:MY_TOKEN]");
    for lead in ["", "u", "us", "use", "user:"] {
        let encoded = base64(format!("{lead}{SECRET}").as_bytes());
        let out = shown(&encoded);
        assert!(out.contains("[redacted:MY_TOKEN]"), "{lead}: {encoded} -> {out}");
    }
}

#[test]
fn tokens_are_known_by_their_shape() {
    // Concatenated so that no scanner takes this file for a leak.
    let key = format!("key {}{} end", "sk-ant-", "api03-abcdefghij0123456789");
    for (text, want) in [
        (key.as_str(), "key [redacted:token] end"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:token]"),
        ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted:token]"),
        (
            "git clone https://me:hunter2pass@example.com/x",
            "git clone https://me:[redacted:password]@example.com/x",
        ),
        ("https://ghx0123456789abcdefghij@example.com", "https://[redacted:token]@example.com"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nok",
            "[redacted:private key]\nok",
        ),
    ] {
        assert_eq!(Redactor::default().text(text), want);
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in [
        "task-force-alpha-and-the-whole-long-story-1",
        "sk-this-is-a-long-slug-of-words-only",
        "see https://example.com/a:b@c and http://localhost:3000/",
        "the bearer of this letter",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ] {
        assert_eq!(Redactor::default().text(text), text);
    }
}

#[test]
fn a_private_key_split_over_reads_is_hidden() {
    let text = "x\n-----BEGIN PRIVATE KEY-----\nMIIabc123\nMIIdef456\n-----END PRIVATE KEY-----\ny\n";
    for size in 1..text.len() {
        let (redactor, mut stream) = (Redactor::default(), RedactStream::default());
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend(stream.push(&redactor, piece));
        }
        out.extend(stream.finish(&redactor));
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("MII") && out.starts_with("x\n") && out.ends_with("y\n"), "{size}: {out:?}");
    }
}

/// Characters that every encoding treats differently.
const AWKWARD: &str = "pa/ss+w\u{f6}rd'42$&x y=z";

#[test]
fn every_form_of_a_value_is_hidden() {
    let redactor = Redactor::new([("MY_TOKEN", AWKWARD)]);
    for written in [
        "pa%2Fss%2Bw%C3%B6rd%2742%24%26x%20y%3Dz",
        "pa%2fss%2bw%c3%b6rd%2742%24%26x%20y%3dz",
        "pa%2Fss%2Bw%C3%B6rd'42%24%26x%20y%3Dz",
        "pa/ss%2Bw%C3%B6rd%2742%24%26x%20y%3Dz",
        "pa%2Fss%2Bw%C3%B6rd%2742%24%26x+y%3Dz",
        "pa/ss+w\\u00f6rd'42$&x y=z",
        "pa\\/ss+w\\u00F6rd'42$&x y=z",
        "pa\\/ss+wörd'42$&x y=z",
        "pa/ss+wörd'42$\\u0026x y=z",
        "pa/ss+wörd'\\''42$&x y=z",
        "pa/ss+wörd'42\\$&x y=z",
        "pa/ss+wörd\\'42\\$\\&x\\ y=z",
        "70612f73732b77c3b6726427343224267820793d7a",
        "pa/ss+\n  wörd'42\n  $&x y=z",
        "pa/ss+wörd'4 2$&x y=z",
    ] {
        let text = format!("a {written} b");
        assert_eq!(redactor.text(&text), "a [redacted:MY_TOKEN] b", "{written}");
        assert_eq!(redactor.known_in(text.as_bytes()).len(), 1, "{written}");
    }
}

#[test]
fn multi_line_key_is_hidden_whole_and_by_line() {
    let lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEF", "AASCBKcwggSjAgEAAoIBAQC7VJTU"];
    let key = format!("-----BEGIN X-----\n{}\n{}\n-----END X-----", lines[0], lines[1]);
    let redactor = Redactor::new([("APP_KEY_PEM", &key)]);
    for text in [key.clone(), key.replace('\n', "\\n"), lines[0].into(), lines[1].into(), lines.concat()] {
        let shown = redactor.text(&text).into_owned();
        assert!(lines.iter().all(|line| !shown.contains(line)), "{text:?} -> {shown:?}");
        assert!(!redactor.known_in(text.as_bytes()).is_empty(), "{text:?}");
    }
}

#[test]
fn similar_words_are_not_hidden() {
    let redactor = Redactor::new([("PIN", "abcde"), ("SHORT_TOKEN", "on the")]);
    assert_eq!(redactor.text("abcde: one thing"), "abcde: one thing", "too short; and not across words");
    for text in ["the token is in the environment", "OPENAI_API_KEY=sk-...", "sk-xxxxxxxxxxxxxxxxxxxxxxxx"] {
        assert!(redactor.known_in(text.as_bytes()).is_empty(), "{text}");
    }
}

#[test]
fn a_scan_finds_a_value_across_pieces_and_keeps_little() {
    let redactor = redactor();
    let wrapped = format!("{}\n    {}", &SECRET[..9], &SECRET[9..]);
    for value in [SECRET, wrapped.as_str(), &base64(SECRET.as_bytes())] {
        for size in [1, 2, 3, 5, 7, 64] {
            let mut scan = redactor.scanner();
            let text = format!("\0\u{1}binary{value}\0 rest");
            text.as_bytes().chunks(size).for_each(|piece| scan.push(piece));
            assert_eq!(scan.found().into_iter().collect::<Vec<_>>(), ["MY_TOKEN"], "{value:?} by {size}");
        }
    }
    let mut scan = redactor.scanner();
    let piece = vec![b'x'; 1 << 16];
    for _ in 0..64 {
        scan.push(&piece);
        assert!(scan.held() < 1024, "{}", scan.held());
    }
    let (start, end) = SECRET.split_at(8);
    scan.push(start.as_bytes());
    scan.begin();
    scan.push(end.as_bytes());
    assert!(scan.found().is_empty(), "the end of one content and the start of another don't form a value");
}

#[test]
fn json_is_cleaned_in_values_and_keys() {
    let mut value = serde_json::json!({"a": [SECRET], SECRET: 1});
    redactor().json(&mut value);
    assert!(!value.to_string().contains("s3cr3t"));
}

#[test]
fn a_value_that_ends_as_it_begins_is_not_cut_in_two() {
    let redactor = Redactor::new([("TWICE", "hunter2hunter2"), ("OTHER_TOKEN", "abcdefgh-hunt")]);
    for text in [
        "first hunter2hunter2 \nlast\n",
        "first hunter2\nhunter2 \nlast\n",
        "first hunter2hunter2hunter2 \nlast\n",
        "first abcdefgh-hunt \nlast\n",
        "first abcd\nefgh-hunt er2hunter2\nlast\n",
    ] {
        for size in [1, 2, 3, 5, 8, 13, 100] {
            let mut stream = RedactStream::default();
            let mut out = Vec::new();
            text.as_bytes().chunks(size).for_each(|piece| out.extend(stream.push(&redactor, piece)));
            out.extend(stream.finish(&redactor));
            let out = String::from_utf8(out).unwrap();
            assert!(
                out.starts_with("first ") && out.ends_with("last\n") && out.contains("[redacted:"),
                "{out:?}"
            );
            let dense: String = out.split_whitespace().collect();
            assert!(
                !dense.contains("hunter2hunter2") && !dense.contains("abcdefgh-hunt"),
                "{text:?} by {size}: {out:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_secret_split_anywhere_never_shows(
        before in "[ -~]{0,40}", after in "[ -~]{0,40}", cuts in prop::collection::vec(1usize..12, 1..30),
    ) {
        let text = format!("{before} {SECRET} {after}");
        let (redactor, mut stream) = (redactor(), RedactStream::default());
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, tail) = rest.split_at((*cut).min(rest.len()));
            out.extend(stream.push(&redactor, piece));
            rest = tail;
        }
        out.extend(stream.finish(&redactor));
        let out = String::from_utf8_lossy(&out).into_owned();
        prop_assert!(!out.contains(SECRET), "{}", out);
        prop_assert!(out.contains("[redacted:MY_TOKEN]"), "{}", out);
    }

    #[test]
    fn a_value_broken_over_lines_never_shows_in_a_stream(
        at in 1usize..17, indent in 0usize..5, cuts in prop::collection::vec(1usize..12, 1..30),
    ) {
        let text = format!("before {}\n{}{} after\n", &SECRET[..at], " ".repeat(indent), &SECRET[at..]);
        let (redactor, mut stream) = (redactor(), RedactStream::default());
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, tail) = rest.split_at((*cut).min(rest.len()));
            out.extend(stream.push(&redactor, piece));
            rest = tail;
        }
        out.extend(stream.finish(&redactor));
        let out = String::from_utf8_lossy(&out).into_owned();
        prop_assert!(out.contains("[redacted:MY_TOKEN]"), "{}", out);
        let dense: String = out.split_whitespace().collect();
        prop_assert!(!dense.contains(&SECRET[3..]), "{}", out);
    }
}
