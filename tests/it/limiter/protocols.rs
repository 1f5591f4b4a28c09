//! Replies to RPC clients, in the form of their protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diana_limiter::{LocalReply, Protocol, Refusal};
use kit::fake::FakeRequest;
use serde_json::{Value, json};

use super::responses::refusal;
use super::{Gate, from};

#[test]
fn protocol_follows_the_content_type() {
    use Protocol::{ConnectStream, ConnectUnary, Grpc, GrpcWeb, GrpcWebText, Http};
    for (content_type, protocol) in [
        ("", Http),
        ("text/plain", Http),
        ("application/proto", ConnectUnary),
        ("Application/Proto;v=1", ConnectUnary),
        ("application/connect+proto", ConnectStream("application/connect+proto")),
        ("application/connect+json;v=1", ConnectStream("application/connect+json")),
        ("application/grpc", Grpc),
        ("application/grpc+proto", Grpc),
        ("application/grpc; charset=utf-8", Grpc),
        ("application/grpc-web", GrpcWeb("application/grpc-web")),
        ("Application/GRPC-Web+proto", GrpcWeb("Application/GRPC-Web+proto")),
        ("application/grpc-web+json", GrpcWeb("application/grpc-web+json")),
        ("application/grpc-web-text", GrpcWebText("application/grpc-web-text")),
        ("application/grpc-web-text+proto", GrpcWebText("application/grpc-web-text+proto")),
    ] {
        for version in [Some("1"), None] {
            let call = call("POST", content_type, version);
            assert_eq!(protocol_of(&call), protocol, "{content_type}");
            for method in METHODS {
                let other = self::call(method, content_type, version);
                assert_eq!(protocol_of(&other), Http, "{method} {content_type}");
            }
        }
    }
    for content_type in ["application/json", "application/json;charset=utf-8", "application/cbor"] {
        let is_unary = |method, version| {
            let call = call(method, content_type, version);
            let found = protocol_of(&call);
            assert!([ConnectUnary, Http].contains(&found), "{content_type}");
            found == ConnectUnary
        };
        assert!(is_unary("POST", Some("1")) && !is_unary("POST", None), "{content_type}");
        for method in METHODS {
            assert!(!is_unary(method, Some("1")), "{method} {content_type}");
        }
    }
    let repeated = call("POST", "application/grpc", None).header("content-type", "text/plain");
    assert_eq!(protocol_of(&repeated), Grpc);
}

/// Methods other than that of a call.
const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post", ""];

/// The protocol of a request.
fn protocol_of(request: &FakeRequest) -> Protocol<'_> {
    let content_type = request.headers.first().map(|(_, content_type)| content_type.as_slice());
    Protocol::of(content_type.unwrap_or_default(), request)
}

/// A request with this method, this media type, and this `connect-protocol-version`.
fn call(method: &str, content_type: impl AsRef<[u8]>, version: Option<&str>) -> FakeRequest {
    let request = FakeRequest { method: Some(method.into()), ..FakeRequest::get("/") };
    let request = request.header("content-type", content_type);
    match version {
        Some(version) => request.header("connect-protocol-version", version),
        None => request,
    }
}

#[test]
fn similar_media_types_are_plain_http() {
    for content_type in [
        &b"application/grpcx"[..],
        b"application/grpc-webx",
        b"application/grpc-web-texts",
        b"application/connect",
        b"application/protobuf",
        b"text/grpc",
        b"application/grpc,application/grpc",
        b"application/grpc-web+\xff",
        b"application/grpc-web+a\"b",
        b"application/connect+a b",
    ] {
        let call = call("POST", content_type, None);
        assert_eq!(protocol_of(&call), Protocol::Http, "{content_type:?}");
    }
}

const BODY: &str = "50 % of {limit}, gr\u{fc}n, by {rule}: {id}";
const MESSAGE: &str = "50 % of 2, gr\u{fc}n, by r: 7";
/// The same in gRPC's encoding.
const ENCODED: &str = "50 %25 of 2, gr%C3%BCn, by r: 7";

fn content_type(reply: &LocalReply) -> Option<&str> {
    reply.headers.get("content-type")
}

fn message(reply: &LocalReply) -> Option<&str> {
    reply.headers.get("grpc-message")
}

fn pushback(reply: &LocalReply) -> Option<&str> {
    reply.headers.get("grpc-retry-pushback-ms")
}

/// Replies in one protocol, with the body as plain text and as a problem.
fn replies(content_type: &str, assert: impl Fn(LocalReply)) {
    for response in ["status: 503", "status: 503, problem: true"] {
        let refusal = refusal(&format!("{{{response}, body: '{BODY}'}}"));
        let call = call("POST", content_type, Some("1")).header("x-request-id", "7");
        assert(*refusal.reply(String::new(), &call));
    }
}

#[test]
fn grpc_reply_has_the_plain_text_as_message() {
    replies("application/grpc+proto", |reply| {
        assert_eq!((reply.status, reply.grpc_status), (200, 8));
        assert_eq!(content_type(&reply), Some("application/grpc"));
        assert_eq!(reply.headers.get("grpc-status"), Some("8"));
        assert_eq!(reply.headers.get("grpc-message"), Some(ENCODED));
        assert_eq!(pushback(&reply), Some("2760000"));
        assert!(reply.body.is_empty());
    });
}

#[test]
fn grpc_web_reply_ends_its_body_with_trailers() {
    let trailers =
        format!("grpc-status:8\r\ngrpc-message:{ENCODED}\r\ngrpc-retry-pushback-ms:2760000\r\n");
    let length = u8::try_from(trailers.len()).unwrap();
    let frame = [&[0x80, 0, 0, 0, length], trailers.as_bytes()].concat();
    for (content_type, body) in [
        ("application/grpc-web+proto", frame.clone()),
        ("application/grpc-web-text", STANDARD.encode(&frame).into_bytes()),
    ] {
        replies(content_type, |reply| {
            assert_eq!((reply.status, self::content_type(&reply)), (200, Some(content_type)));
            assert_eq!((&*reply.body, message(&reply)), (&*body, None));
        });
    }
}

#[test]
fn connect_unary_reply_is_an_error_in_json() {
    for content_type in ["application/json", "application/proto"] {
        replies(content_type, |reply| {
            let media_type = self::content_type(&reply);
            assert_eq!((reply.status, media_type), (429, Some("application/json")));
            assert_eq!(message(&reply), None);
            let error: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(error, json!({"code": "resource_exhausted", "message": MESSAGE}));
        });
    }
}

#[test]
fn connect_stream_reply_is_one_end_of_stream_message() {
    replies("application/connect+proto", |reply| {
        assert_eq!((reply.status, content_type(&reply)), (200, Some("application/connect+proto")));
        assert_eq!(message(&reply), None);
        let (flags, rest) = reply.body.split_first().unwrap();
        let (length, message) = rest.split_first_chunk().unwrap();
        assert_eq!(*flags, 2);
        assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
        let end: Value = serde_json::from_slice(message).unwrap();
        assert_eq!(end, json!({"error": {"code": "resource_exhausted", "message": MESSAGE}}));
    });
}

#[test]
fn grpc_status_and_pushback_are_those_of_the_refusal() {
    let reply = |refusal: &Refusal| {
        let reply = refusal.reply(String::new(), &call("POST", "application/grpc", None));
        let ms = pushback(&reply).and_then(|ms| ms.parse::<i32>().ok());
        assert_eq!(reply.headers.get("grpc-status"), Some(&*reply.grpc_status.to_string()));
        (reply.grpc_status, ms)
    };
    assert_eq!(reply(&refusal("{grpc_status: 14}")), (14, Some(2_760_000)));
    let unary = call("POST", "application/proto", Some("1"));
    let unavailable = refusal("{grpc_status: 14}");
    assert_eq!(unavailable.reply(String::new(), &unary).status, 503);
    let mut gate =
        Gate::new("limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 0, scope: local}]}]");
    assert_eq!(reply(&gate.refusal(&from("ann"))), (8, Some(-1)));
    let rule = "{actor: account, unit: month, rpu: 1, algo: W, scope: local}";
    let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{rule}]}}]"));
    assert!(gate.admits(&from("ann")));
    let (_, pushback) = reply(&gate.refusal(&from("ann")));
    assert!(pushback.is_some_and(|ms| ms > 1_000_000_000));
    // Open requests may end at any time.
    for rule in
        ["in_flight: 1", "unit: day, algo: W, rpu: 1, cost: {response: {header: x}, max: 1}"]
    {
        let rule = format!("{{actor: account, scope: local, {rule}}}");
        let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{rule}]}}]"));
        let _open = gate.decide(&from("ann"));
        let refusal = gate.refusal(&from("ann"));
        assert_eq!(refusal.headers().get("retry-after"), Some("1"), "{rule}");
        assert_eq!(reply(&refusal), (8, Some(1_000)), "{rule}");
    }
}

#[test]
fn plain_http_reply_is_the_configured_one() {
    let plain = refusal("{status: 429, body: 'by {rule}', content_type: text/x-plain}");
    let reply = plain.reply(String::new(), &from("ann"));
    assert_eq!((reply.status, content_type(&reply)), (429, Some("text/x-plain")));
    assert_eq!((&*reply.body, message(&reply)), (&b"by r"[..], None));
    let reply = refusal("{problem: true}").reply(String::new(), &from("ann"));
    assert_eq!((reply.status, content_type(&reply)), (503, Some("application/problem+json")));
    // The host adds it.
    assert_eq!(content_type(&refusal("{body: text}").reply(String::new(), &from("ann"))), None);
}

#[test]
fn unavailable_redis_is_code_unavailable_to_rpc_clients() {
    let mut gate = Gate::cut_off(
        "redis: {cluster: redis, on_failure: deny}\nresponse: {status: 429, problem: true}\n\
         limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 9, scope: global}]}]",
    );
    let refusal = gate.refusal(&from("ann"));
    let reply =
        |content_type: &str| refusal.reply(String::new(), &call("POST", content_type, Some("1")));
    let grpc = reply("application/grpc");
    assert_eq!((grpc.status, grpc.grpc_status), (200, 14));
    assert_eq!(message(&grpc), Some("rate limiter unavailable"));
    let trailers = "grpc-status:14\r\ngrpc-message:rate limiter unavailable\r\n\
                    grpc-retry-pushback-ms:1000\r\n";
    let frame = [b"\x80\0\0\0\x54", trailers.as_bytes()].concat();
    assert_eq!(trailers.len(), 0x54);
    let text = STANDARD.encode(&frame).into_bytes();
    for (kind, body) in [("application/grpc-web", frame), ("application/grpc-web-text", text)] {
        let web = reply(kind);
        assert_eq!((web.status, &*web.body), (200, &*body), "{kind}");
    }
    let error = r#"{"code":"unavailable","message":"rate limiter unavailable"}"#;
    for kind in ["application/proto", "application/json"] {
        let unary = reply(kind);
        assert_eq!((unary.status, &*unary.body), (503, error.as_bytes()), "{kind}");
    }
    let stream = reply("application/connect+proto");
    assert_eq!((stream.status, stream.body.get(..1)), (200, Some(&[2][..])));
    let end = format!(r#"{{"error":{error}}}"#);
    assert_eq!(stream.body.get(5..), Some(end.as_bytes()));
}
