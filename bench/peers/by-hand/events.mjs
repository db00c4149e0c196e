// Takes in events as a team would by hand: a key that is checked, and one statement per event, which counts once.
//   node events.mjs postgres://…
// Prints its address and a key, and serves POST /event-log until it is killed.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import pg from "pg";

const key = randomUUID();
const pool = new pg.Pool({ connectionString: process.argv[2], max: 16 });
await pool.query(`
  CREATE TABLE events (id uuid PRIMARY KEY, app_id text NOT NULL, name text NOT NULL, at timestamptz NOT NULL,
    ingest_id text, parameters jsonb NOT NULL, UNIQUE (app_id, ingest_id));
  CREATE INDEX ON events (app_id, name, at);
`);

const store = async (event) => {
  const id = randomUUID();
  const stored = await pool.query({
    name: "event",
    text: "INSERT INTO events VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (app_id, ingest_id) DO NOTHING",
    values: [id, event.appId, event.eventName, event.timestamp, event.ingestId ?? null, event.parameters],
  });
  return { eventId: id, deduped: stored.rowCount === 0 };
};

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", async () => {
    const answer = (status, body) => {
      const text = JSON.stringify(body);
      response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
      response.end(text);
    };
    if (request.headers["x-api-key"] !== key) return answer(401, { error: "UNAUTHORIZED" });
    try {
      answer(201, await store(JSON.parse(Buffer.concat(chunks))));
    } catch (error) {
      answer(500, { error: String(error) });
    }
  });
});
server.listen(0, "127.0.0.1", () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ address: `${address}:${port}`, key }));
});
