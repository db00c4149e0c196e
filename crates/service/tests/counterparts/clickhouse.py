"""ClickHouse's engine (chDB) behind ClickHouse's HTTP interface: `POST /?query=…` with settings as further parameters and
rows as the body. `clickhouse.py FOLDER PORT` keeps its tables in the folder, prints its port when it is ready, and runs
until it is killed. Every third insert is stored and its answer lost."""

import itertools
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb.session import Session

session = Session(sys.argv[1])
one_at_a_time = threading.Lock()
inserts = itertools.count(1)


def with_settings(query, settings):
    """The statement with the settings that came as parameters, in SQL."""
    given = ", ".join(f"{name} = '{value}'" for name, value in settings)
    if not given:
        return query
    if query.startswith("INSERT") and " FORMAT " in query:
        statement, form = query.rsplit(" FORMAT ", 1)
        return f"{statement} SETTINGS {given} FORMAT {form}"
    return f"{query} SETTINGS {given}"


class Interface(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        parameters = parse_qsl(urlsplit(self.path).query)
        query = dict(parameters).get("query", "")
        # Of the interface, not of the statement.
        outside = {"query", "wait_end_of_query", "user", "password", "database"}
        statement = with_settings(query, [pair for pair in parameters if pair[0] not in outside])
        try:
            with one_at_a_time:
                answer = session.query(f"{statement}\n{body}".strip(), "TabSeparated").bytes()
            if query.startswith("INSERT") and next(inserts) % 3 == 0:
                self.close_connection = True
                return
            self.say(200, answer, {})
        except Exception as error:
            self.say(500, str(error).encode(), {"X-ClickHouse-Exception-Code": "1"})

    def say(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Interface)
print(server.server_address[1], flush=True)
server.serve_forever()
