// Sends events through graphile-worker, as a team without a webhook service would: one job an event, one request a job.
//   node deliver.mjs postgres://… http://127.0.0.1:…/hooks 10000
import { makeWorkerUtils, run } from "graphile-worker";

const [connectionString, target, wanted] = process.argv.slice(2);
const count = Number(wanted);
const atOnce = 16;
const body = "x".repeat(600);

const utils = await makeWorkerUtils({ connectionString });
await utils.migrate();

let delivered = 0;
let finish;
const finished = new Promise((resolve) => (finish = resolve));
const before = process.cpuUsage();
const started = performance.now();
const runner = await run({
  connectionString,
  concurrency: atOnce,
  noHandleSignals: true,
  logger: undefined,
  taskList: {
    deliver: async (payload) => {
      const answer = await fetch(target, { method: "POST", body: payload.body });
      if (!answer.ok) throw new Error(`answered ${answer.status}`);
      await answer.arrayBuffer();
      if (++delivered === count) finish();
    },
  },
});
const add = async (first) => {
  for (let number = first; number < count; number += atOnce) await utils.addJob("deliver", { body });
};
await Promise.all(Array.from({ length: atOnce }, (_, first) => add(first)));
await finished;
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - started) / 1000;
await runner.stop();
await utils.release();
console.log(JSON.stringify({ seconds, cpu: (user + system) / 1e6 }));
