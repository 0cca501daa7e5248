//! The trace of a caller, as `traceparent` names it (W3C Trace Context).

/// Names a trace and the span in it that caused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub span: String,
}

impl TraceParent {
    /// Reads a header or a member of `_meta`. None if it is not valid: the standard requires that it is ignored then.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let [version, trace, span, flags, more @ ..] = &parts[..] else { return None };
        let digits = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let id = |text: &str, length: usize| digits(text, length) && text.bytes().any(|byte| byte != b'0');
        // Later versions may have more parts; version ff is forbidden.
        let valid_version = digits(version, 2) && *version != "ff" && (*version != "00" || more.is_empty());
        (valid_version && id(trace, 32) && id(span, 16) && digits(flags, 2))
            .then(|| TraceParent { trace: (*trace).to_owned(), span: (*span).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn valid_parents_are_read_and_others_ignored() {
        let due = TraceParent { trace: TRACE.into(), span: SPAN.into() };
        for text in
            [format!("00-{TRACE}-{SPAN}-01"), format!(" 00-{TRACE}-{SPAN}-00 "), format!("01-{TRACE}-{SPAN}-01-x")]
        {
            assert_eq!(TraceParent::parse(&text).as_ref(), Some(&due), "{text}");
        }
        let (no_trace, no_span, upper) = ("0".repeat(32), "0".repeat(16), TRACE.to_uppercase());
        for text in [
            String::new(),
            TRACE.into(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-x"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{no_trace}-{SPAN}-01"),
            format!("00-{TRACE}-{no_span}-01"),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{SPAN}-{TRACE}-01"),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }
}
