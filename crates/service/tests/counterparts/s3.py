"""An S3 storage (moto) that believes nobody: signatures, policies and their conditions, which moto does not look at, are
judged by botocore before moto sees a request. `s3.py` prints its port when it is ready, and runs until it is killed.

Beside S3 it has `/_test/`. `GET objects` lists all keys and `GET parts` those of uploads in parts that nobody ended;
`PUT objects/KEY` puts one, `DELETE objects/KEY` removes one, `PUT many/COUNT` puts so many below our prefix, `PUT parts/KEY` begins
an upload in parts. What goes wrong:

- `PUT fault/STATUS` makes it answer everything with that status; 0 ends that.
- `PUT refuse/METHOD/COUNT` lets such a request fail once: the first of them from now on, or the second, and so on.
- `PUT cut/METHOD/COUNT` does what it asks for, and breaks off in the middle of the answer.
- `PUT hold/METHOD/COUNT` does what it asks for, and never answers. `GET held` answers once that was done.
- `PUT race/METHOD/KEY` changes that object once, right after such a request for it.
- `PUT late/COPY` makes the next copy fail after its status was sent.
- `PUT later/SECONDS` moves its clock on; 0 ends that."""

import base64
import datetime
import hmac
import io
import json
import threading
from urllib.parse import parse_qsl, quote, unquote, urlencode

from botocore.auth import S3SigV4PostAuth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

KEY, SECRET, REGION, BUCKET = "AKIDTENANTRY", "s3cr/et+key=", "eu-test-1", "acme-files"
CREDENTIALS = Credentials(KEY, SECRET)
ACCOUNT = "123456789012"


def refusal(status, code):
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return Response(body, status, content_type="application/xml")


later = datetime.timedelta(0)


def now():
    return datetime.datetime.now(datetime.timezone.utc) + later


def when(text, form):
    return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc)


def judge_signed_url(request):
    """None when the address was signed by somebody who knows the secret, for this request, and is not too old."""
    query = dict(parse_qsl(request.query_string.decode(), keep_blank_values=True))
    if "X-Amz-Signature" not in query:
        return refusal(403, "AccessDenied")
    key, day, region, service, end = query["X-Amz-Credential"].split("/")
    if key != KEY:
        return refusal(403, "InvalidAccessKeyId")
    if region != REGION:
        return refusal(400, "AuthorizationQueryParametersError")
    signed = {name: request.headers.get(name, "") for name in query["X-Amz-SignedHeaders"].split(";")}
    # Whatever changes what is copied has to be signed.
    unsigned = [name for name in request.headers.keys() if name.lower().startswith("x-amz-") and name.lower() not in signed]
    if unsigned:
        return refusal(403, "AccessDenied")
    signature = query.pop("X-Amz-Signature")
    url = f"http://{request.host}{request.path}?{urlencode(query, quote_via=quote, safe='-_.~')}"
    again = AWSRequest(method=request.method, url=url, headers=signed)
    again.context["timestamp"] = query["X-Amz-Date"]
    auth = S3SigV4QueryAuth(CREDENTIALS, "s3", REGION)
    made = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    if not hmac.compare_digest(made, signature):
        return refusal(403, "SignatureDoesNotMatch")
    signed_at = when(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
    if not day == query["X-Amz-Date"][:8] or now() > signed_at + datetime.timedelta(seconds=int(query["X-Amz-Expires"])):
        return refusal(403, "AccessDenied")
    if int(query["X-Amz-Expires"]) > 7 * 24 * 3600 or signed_at > now() + datetime.timedelta(minutes=15):
        return refusal(400, "AuthorizationQueryParametersError")
    return None


def judge_form(request):
    """None when the form is as its policy says, and the policy was signed and is not too old."""
    fields = {name.lower(): value for name, value in request.form.items()}
    files = list(request.files.items(multi=True))
    if len(files) != 1 or files[0][0] != "file":
        return refusal(400, "InvalidArgument")
    if "policy" not in fields or "x-amz-signature" not in fields:
        return refusal(403, "AccessDenied")
    again = AWSRequest(method="POST", url=request.url)
    again.context["timestamp"] = fields["x-amz-date"]
    made = S3SigV4PostAuth(CREDENTIALS, "s3", REGION).signature(fields["policy"], again)
    if not hmac.compare_digest(made, fields["x-amz-signature"]):
        return refusal(403, "SignatureDoesNotMatch")
    policy = json.loads(base64.b64decode(fields["policy"]))
    if now() > when(policy["expiration"], "%Y-%m-%dT%H:%M:%SZ"):
        return refusal(403, "AccessDenied")
    size = len(files[0][1].read())
    given, named = {**fields, "bucket": BUCKET}, {"policy", "x-amz-signature"}
    for condition in policy["conditions"]:
        if isinstance(condition, list) and condition[0] == "content-length-range":
            if size > condition[2]:
                return refusal(400, "EntityTooLarge")
            continue
        (name, value), = condition.items()
        named.add(name.lower())
        if given.get(name.lower()) != value:
            return refusal(403, "AccessDenied")
    return refusal(403, "AccessDenied") if set(fields) - named else None


def broken_off(body):
    """Half of an answer: the server closes the connection of whatever fails once it has begun."""
    yield body[:len(body) // 2]
    raise ConnectionError("as somebody asked for")


class Storage:
    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.backend = s3_backends[ACCOUNT]["aws"]
        self.backend.create_bucket(BUCKET, REGION)
        self.fault, self.race, self.late = 0, None, False
        self.trap, self.held = None, threading.Event()

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        request = Request(dict(environ, **{"wsgi.input": io.BytesIO(body)}))
        if request.path.startswith("/_test/"):
            return self.told(request, body)(environ, start_response)
        if self.fault:
            return refusal(self.fault, "SlowDown")(environ, start_response)
        is_form = request.method == "POST" and (request.content_type or "").startswith("multipart/form-data")
        refused = None
        if request.method != "OPTIONS":
            refused = judge_form(request) if is_form else judge_signed_url(request)
        refused = refused or self.judge_copy(request)
        if refused:
            return refused(environ, start_response)
        sprung = self.sprung(request.method)
        if sprung == "refuse":
            return refusal(500, "InternalError")(environ, start_response)
        if self.late and "x-amz-copy-source" in request.headers:
            self.late = False
            return refusal(200, "InternalError")(environ, start_response)
        answer = self.moto(environ, start_response)
        if self.race and [request.method, request.path.removeprefix(f"/{BUCKET}/")] == self.race:
            # Read now: the answer may be made when somebody asks for it.
            answer = [b"".join(answer)]
            self.backend.put_object(BUCKET, self.race[1], b"other bytes")
            self.race = None
        if sprung == "cut":
            return broken_off(b"".join(answer))
        if sprung == "hold":
            answer = [b"".join(answer)]
            self.held.set()
            threading.Event().wait()
        return answer

    def sprung(self, method):
        """What somebody wants to happen to this request."""
        if not self.trap or self.trap[1] != method:
            return None
        self.trap[2] -= 1
        if self.trap[2] > 0:
            return None
        (what, _, _), self.trap = self.trap, None
        return what

    def judge_copy(self, request):
        """moto does not know this condition."""
        wanted = request.headers.get("x-amz-copy-source-if-match")
        if wanted is None:
            return None
        source = unquote(request.headers["x-amz-copy-source"]).lstrip("/").split("/", 1)[1]
        found = self.backend.get_object(BUCKET, source)
        return None if found and found.etag == wanted else refusal(412 if found else 404, "PreconditionFailed")

    def told(self, request, body):
        global later
        what, _, which = request.path.removeprefix("/_test/").partition("/")
        if what == "fault":
            self.fault = int(which)
        elif what in ("refuse", "cut", "hold"):
            method, count = which.split("/")
            self.trap = [what, method, int(count)]
            self.held.clear()
        elif what == "held":
            self.held.wait()
        elif what == "later":
            later = datetime.timedelta(seconds=int(which))
        elif what == "race":
            self.race = which.split("/", 1)
        elif what == "late":
            self.late = True
        elif what == "many":
            for number in range(int(which)):
                name = f"{number:032}"
                self.backend.put_object(BUCKET, f"tenantry/{name[:2]}/{name}", b"")
        elif what == "objects" and request.method == "PUT":
            self.backend.put_object(BUCKET, which, body)
        elif what == "objects" and request.method == "DELETE":
            self.backend.delete_object(BUCKET, which)
        elif what == "parts" and request.method == "PUT":
            self.backend.create_multipart_upload(BUCKET, which, {}, "STANDARD", {}, None, None, None)
        elif what == "parts":
            parts = self.backend.buckets[BUCKET].multiparts.values()
            return Response(json.dumps(sorted(upload.key_name for upload in parts)), content_type="application/json")
        else:
            keys = self.backend.buckets[BUCKET].keys
            return Response(json.dumps(sorted(keys.keys())), content_type="application/json")
        return Response("", 204)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


server = make_server("127.0.0.1", 0, Storage(), threaded=True, request_handler=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
