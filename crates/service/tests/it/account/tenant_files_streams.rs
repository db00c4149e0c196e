//! Files on their way over a real connection: cut off at any byte, and larger than what may be in memory.

use serde_json::{Map, Value, json};
use testkit::{
    Caller, EngineName, Fixture as _, OnPort, TestApp,
    files::{fields, part},
    on_both_engines,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

on_both_engines!(an_upload_that_is_cut_off_leaves_nothing, a_large_file_moves_with_little_memory);

const MIB: usize = 1024 * 1024;
const PIECE: usize = 64 * 1024;
const LARGE: usize = 64 * MIB;
/// For all that is done meanwhile; a quarter of the file.
const ROOM: u64 = 16 * 1024 * 1024;
const FINISH: &str = "/account/tenant/upload/finish";
const FILE_HEAD: &str = "filename=\"x.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n";

async fn prepare(caller: &Caller) -> Map<String, Value> {
    let body = json!({ "fileName": "a.bin", "contentType": "application/octet-stream" });
    let form = caller.post("/account/tenant/upload/prepare", body).await.expect(200);
    form.at("/fields").as_object().expect("fields").clone()
}

/// The form with a file, up to the bytes of it, and what comes after them.
fn around(form: &Map<String, Value>) -> (Vec<u8>, &'static [u8]) {
    let mut head = [fields(form), vec![part("file", b"", true)]].concat().concat();
    head.truncate(head.len() - 2);
    assert!(head.ends_with(FILE_HEAD.as_bytes()));
    (head, b"\r\n--b0undary--\r\n")
}

async fn connect(server: &OnPort) -> TcpStream {
    let port = server.base_url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    TcpStream::connect(("127.0.0.1", port)).await.expect("it listens")
}

const POST: &str = "POST /cloud-views/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                    Content-Type: multipart/form-data; boundary=b0undary\r\n";

fn objects(app: &TestApp) -> usize {
    let folders = std::fs::read_dir(app.site().folder().join("files")).into_iter().flatten().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count()).sum()
}

/// Sends a request's head and some of its body, closes, and waits until the other side has closed too.
async fn cut_off(server: &OnPort, head: &str, some: &[u8]) {
    let mut stream = connect(server).await;
    stream.write_all(&[head.as_bytes(), b"\r\n", some].concat()).await.expect("sent");
    stream.shutdown().await.expect("closed");
    let mut answer = Vec::new();
    // What it says, if anything, is for somebody who is gone.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&answer));
}

async fn an_upload_that_is_cut_off_leaves_nothing(server: OnPort) {
    let app = &server.app;
    let acme = app.workspace("acme").await;
    let form = prepare(&acme.key()).await;
    let bytes: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[usize::from(n % 3 == 0)]).collect();
    let (head, tail) = around(&form);
    let body = [&head[..], &bytes, tail].concat();
    let (file, end) = (head.len(), head.len() + bytes.len());
    // Before and in the fields, at the file's first bytes, around what is written at a time, and in each of the last ones.
    let few = [0, 1, 40, file / 2, file - FILE_HEAD.len(), file - 1, file, file + 1, file + 256 * 1024, end - 1];
    for at in few.into_iter().chain(end..body.len() - 2) {
        let counted = format!("{POST}Content-Length: {}\r\n", body.len());
        cut_off(&server, &counted, &body[..at]).await;
        // In pieces, of which the last one is shorter than it says.
        let announced = [format!("{:x}\r\n", body.len()).as_bytes(), &body[..at]].concat();
        cut_off(&server, &format!("{POST}Transfer-Encoding: chunked\r\n"), &announced).await;
    }
    for _ in 0..2 {
        app.drain().await;
    }
    assert_eq!(objects(app), 0);
    acme.key().post(FINISH, json!({ "key": form["key"] })).await.error(409, "CONFLICT");
    // The form is as good as before.
    testkit::files::post(app, &form, &bytes).await.expect(204);
    let address = acme.key().post(FINISH, json!({ "key": form["key"] })).await.expect(200).text("");
    let path = address.strip_prefix(&server.base_url).expect("an address of this service");
    assert!(app.anon().get(path).await.expect(200).bytes() == bytes);
    assert_eq!(objects(app), 1);
}

/// What the pieces of the large file hold.
fn piece(n: usize) -> Vec<u8> {
    vec![n.to_le_bytes()[0] ^ 0x5a; PIECE]
}

async fn upload(server: &OnPort, form: &Map<String, Value>, pieces: usize) {
    let (head, tail) = around(form);
    let mut stream = connect(server).await;
    let length = head.len() + pieces * PIECE + tail.len();
    stream.write_all(format!("{POST}Content-Length: {length}\r\n\r\n").as_bytes()).await.expect("sent");
    stream.write_all(&head).await.expect("sent");
    for n in 0..pieces {
        stream.write_all(&piece(n)).await.expect("sent");
    }
    stream.write_all(tail).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

async fn download(server: &OnPort, address: &str, pieces: usize) {
    let path = address.strip_prefix(&server.base_url).expect("an address of this service");
    let mut stream = connect(server).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let mut read = vec![0; PIECE];
    for n in 0..pieces {
        stream.read_exact(&mut read).await.expect("a piece");
        assert!(read == piece(n), "piece {n}");
    }
    assert_eq!(stream.read(&mut read).await.expect("the end"), 0);
}

/// Each test is a process of its own: what it held at most since the last call, and what it holds now.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().strip_suffix(" kB").and_then(|count| count.parse::<u64>().ok()).expect("a number") * 1024
    };
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be set back");
    (of("VmHWM:"), of("VmRSS:"))
}

async fn a_large_file_moves_with_little_memory(engine: EngineName) {
    let server = OnPort::start_with(engine, |options| {
        (options.files.max_bytes, options.files.workspace_bytes) = (LARGE as u64, 4 * LARGE as u64);
    })
    .await;
    let acme = server.app.workspace("acme").await;
    // The first one finds nothing prepared.
    for pieces in [MIB / PIECE, LARGE / PIECE] {
        let form = prepare(&acme.key()).await;
        let (_, before) = memory();
        upload(&server, &form, pieces).await;
        let (uploading, between) = memory();
        let address = acme.key().post(FINISH, json!({ "key": form["key"] })).await.expect(200).text("");
        download(&server, &address, pieces).await;
        let (downloading, _) = memory();
        let grown = (uploading.saturating_sub(before), downloading.saturating_sub(between));
        println!("{} KiB: {} KiB up, {} KiB down", pieces * PIECE / 1024, grown.0 / 1024, grown.1 / 1024);
        assert!(grown.0 < ROOM && grown.1 < ROOM, "memory grew by {grown:?}");
    }
    server.finish().await;
}
