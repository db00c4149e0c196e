"""What scripts/schemathesis adds to schemathesis: each request goes to a second server too, whose answer is judged alike.

Most of a run's time goes into making requests, so they are made once for both engines. The servers give out different
ids and keys: what the second one gave out is put in the place of what the first one gave out at the same point of the
same answer, so that a request about something that exists on one engine is about something that exists on the other.
"""

import atexit
import json
import os
import re
from functools import partial

import requests
import schemathesis
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import converter
from schemathesis.specs.openapi.coverage import _operation

TOKEN = re.compile(rb"[A-Za-z0-9_.~-]{16,}")


def spare_long_patterns():
    """Keeps a long maxLength out of the pattern beside it, where it costs a second of compilation in every schema.

    Schemathesis itself leaves such a pattern as it is if it is too long to compile.
    """
    for module in (converter, _operation):
        module.update_quantifier = partial(unless_long, module.update_quantifier)


def unless_long(update, pattern, min_length, max_length):
    return pattern if (max_length or 0) > 1000 else update(pattern, min_length, max_length)


class Second:
    """The server that gets each request after the first one."""

    def __init__(self, first, engine, folder):
        self.engine, self.folder = engine, folder
        self.first_base, *theirs = read_lines(f"{first}/names")
        self.base, *ours = read_lines(f"{folder}/names")
        self.names = dict(zip((name.encode() for name in theirs), (name.encode() for name in ours), strict=True))
        if not all(TOKEN.fullmatch(name) for name in self.names):
            raise ValueError("a name that would not be found in a request")
        self.session = requests.Session()
        self.session.trust_env = False
        self.sent = self.alike = 0
        atexit.register(self.report)

    def report(self):
        with open(f"{self.folder}/sent", "w") as file:
            print(self.sent, self.alike, file=file)

    def translate(self, value):
        if isinstance(value, str):
            return self.translate(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        return TOKEN.sub(lambda found: self.names.get(found[0], found[0]), value)

    def send(self, request):
        request = request.copy()
        request.url = self.translate(self.base + request.url.removeprefix(self.first_base))
        for name, value in request.headers.items():
            request.headers[name] = self.translate(value)
        if request.body:
            length = len(request.body)
            request.body = self.translate(request.body)
            # A generated length may be wrong on purpose.
            if request.headers.get("Content-Length") == str(length):
                request.headers["Content-Length"] = str(len(request.body))
        self.sent += 1
        answer = self.session.send(request, timeout=120, allow_redirects=False)
        return Response.from_requests(answer, verify=True)

    def learn(self, theirs, ours):
        """Remembers what the second server gave out where the first one gave out something else."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for name in theirs.keys() & ours.keys():
                self.learn(theirs[name], ours[name])
        elif isinstance(theirs, list) and isinstance(ours, list):
            for pair in zip(theirs, ours):
                self.learn(*pair)
        elif isinstance(theirs, str) and isinstance(ours, str) and theirs != ours:
            if TOKEN.fullmatch(theirs.encode()) and TOKEN.fullmatch(ours.encode()):
                self.names.setdefault(theirs.encode(), ours.encode())


def read_lines(path):
    with open(path) as file:
        return file.read().split()


def body(response):
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def complaints(ctx, response, case):
    for check in ctx.internals.checks:
        if check is not second_engine:
            try:
                check(ctx, response, case)
            except FailureGroup as group:
                yield from group.exceptions
            except (Failure, AssertionError) as failure:
                yield failure


@schemathesis.check
def second_engine(ctx, response, case):
    """Sends the request to the second server, and runs the other checks on its answer."""
    try:
        answer = second.send(response.request)
    except requests.RequestException as error:
        raise AssertionError(f"{second.engine} did not answer: {error}") from None
    second.alike += answer.status_code == response.status_code
    second.learn(body(response), body(answer))
    found = [f"- {getattr(failure, 'title', 'Failed')}: {failure}" for failure in complaints(ctx, answer, case)]
    if found:
        request = answer.request
        sent = f"{request.method} {request.url}\n{(request.body or b'')[:2000]!r}"
        got = f"{answer.status_code} {answer.content[:2000].decode(errors='replace')}"
        raise AssertionError("\n".join([f"on {second.engine}:", *found, "", sent, "", got]))


spare_long_patterns()
second = Second(*os.environ["SECOND_ENGINE"].split(":")) if "SECOND_ENGINE" in os.environ else None
