// Counts usage as a team would by hand: a token that is checked, a membership that is read, an event that counts once, and a
// counter against its limit, in one transaction.
//   node usage.mjs postgres://…
// Prints its address and a token, and serves POST /usage/ingest until it is killed.
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID, sign, verify } from "node:crypto";
import { createServer } from "node:http";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.argv[2], max: 16 });
await pool.query(`
  CREATE TABLE members (user_id text, tenant_id text, enabled boolean NOT NULL, PRIMARY KEY (user_id, tenant_id));
  CREATE TABLE plans (tenant_id text PRIMARY KEY, quota bigint NOT NULL);
  CREATE TABLE usage_events (id uuid PRIMARY KEY, tenant_id text NOT NULL, metric text NOT NULL, value bigint NOT NULL,
    idempotency_key text, at timestamptz NOT NULL, UNIQUE (tenant_id, idempotency_key));
  CREATE TABLE counters (tenant_id text, metric text, period text, used bigint NOT NULL, PRIMARY KEY (tenant_id, metric, period));
`);
const workspaces = 20;
for (let number = 0; number < workspaces; number++) {
  await pool.query("INSERT INTO members VALUES ($1, $2, true)", [`user${number}`, `tenant${number}`]);
  await pool.query("INSERT INTO plans VALUES ($1, $2)", [`tenant${number}`, 2 ** 50]);
}

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const [secret, known] = [createPrivateKey(pair.privateKey.export({ type: "pkcs8", format: "pem" })), createPublicKey(pair.publicKey.export({ type: "spki", format: "pem" }))];
const coded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const token = (number) => {
  const body = `${coded({ alg: "RS256", typ: "at+jwt" })}.${coded({ sub: `user${number}`, tid: `tenant${number}`, exp: Date.now() / 1000 + 36000 })}`;
  return `${body}.${sign("sha256", Buffer.from(body), secret).toString("base64url")}`;
};

// A signature is checked once: as kind to Node as we are to ourselves.
const checked = new Map();
const claims = (header) => {
  const given = header?.startsWith("Bearer ") && header.slice(7);
  if (!given) return null;
  if (checked.has(given)) return checked.get(given);
  const [head, body, signature] = given.split(".");
  if (!verify("sha256", Buffer.from(`${head}.${body}`), known, Buffer.from(signature, "base64url"))) return null;
  const read = JSON.parse(Buffer.from(body, "base64url"));
  checked.set(given, read);
  return read;
};

const ingest = async ({ sub, tid }, event) => {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const allowed = await client.query({ name: "member", text: "SELECT enabled FROM members WHERE user_id = $1 AND tenant_id = $2", values: [sub, tid] });
    if (!allowed.rows[0]?.enabled) throw new Error("not a member");
    const id = randomUUID();
    const stored = await client.query({
      name: "event",
      text: "INSERT INTO usage_events VALUES ($1, $2, $3, $4, $5, now()) ON CONFLICT (tenant_id, idempotency_key) DO NOTHING",
      values: [id, tid, event.metric, event.value ?? 1, event.idempotencyKey ?? null],
    });
    if (stored.rowCount) {
      await client.query({
        name: "count",
        text: "INSERT INTO counters VALUES ($1, $2, to_char(now(), 'YYYY-MM'), $3) ON CONFLICT (tenant_id, metric, period) DO UPDATE SET used = counters.used + excluded.used RETURNING used, (SELECT quota FROM plans WHERE tenant_id = $1)",
        values: [tid, event.metric, event.value ?? 1],
      });
    }
    await client.query("COMMIT");
    return { eventId: id, deduped: stored.rowCount === 0 };
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
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
    const who = claims(request.headers.authorization);
    if (!who || who.exp * 1000 < Date.now()) return answer(401, { error: "UNAUTHORIZED" });
    try {
      answer(201, await ingest(who, JSON.parse(Buffer.concat(chunks))));
    } catch (error) {
      answer(500, { error: String(error) });
    }
  });
});
server.listen(0, "127.0.0.1", () => {
  const { address, port } = server.address();
  console.log(JSON.stringify({ address: `${address}:${port}`, tokens: Array.from({ length: workspaces }, (_, number) => token(number)) }));
});
