// Order one job and print its result, as a MES does.
//
// npm install mqtt
// node first_order.mjs HOST PORT [USER PASSWORD]

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import mqtt from "mqtt";

const SCOPE = "app/jobs/station-1";
const ANSWERS = "app/jobs/answers/first-order-node";
const METHOD = "org.opcfoundation.ISA95-JOBCONTROL_V2";
const WORK_MASTER = "com.github.aschamberger.ISA95-JOBCONTROL_V2.config.workmaster.v1";
const RECIPE_SCHEMA = "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/";

const [host, port, username, password] = process.argv.slice(2);
const login = { host, port: Number(port), username, password };
const client = await mqtt.connectAsync({ ...login, protocolVersion: 5, clientId: "first-order-node" });

const waiting = new Map(); // id of a call -> what takes its answer
let readEvent = () => {};
client.on("message", (topic, payload, packet) => {
  if (topic === ANSWERS) waiting.get(packet.properties?.correlationData?.toString())?.(payload.toString());
  else readEvent(JSON.parse(payload));
});
await client.subscribeAsync([ANSWERS, `${SCOPE}/events`], { qos: 1 });

// Send a call each second until it is answered; a call with the same `id` is executed once.
async function call(type, data, extensions = {}) {
  const id = randomUUID();
  const properties = {
    contentType: "application/json",
    responseTopic: ANSWERS,
    correlationData: Buffer.from(id),
    userProperties: { specversion: "1.0", id, source: "/first-order-node", type, ...extensions },
  };
  const answered = new Promise((resolve) => waiting.set(id, resolve));
  for (let attempt = 0; attempt < 60; attempt++) {
    await client.publishAsync(`${SCOPE}/commands`, JSON.stringify(data), { qos: 1, properties });
    const answer = await Promise.race([answered, sleep(1000)]);
    if (answer === undefined) continue;
    waiting.delete(id);
    console.log(type, answer || "done");
    return JSON.parse(answer || "{}");
  }
  throw new Error(`no answer to ${type}: does the gateway run, and may it write to ${ANSWERS}?`);
}

const recipe = JSON.parse(await readFile(new URL("recipe.json", import.meta.url)));
await call(WORK_MASTER, { ID: "WM-FIRST", data: recipe, dataschema: RECIPE_SCHEMA }, { method: "PUT" });

const jobId = `ORDER-${randomUUID().slice(0, 8)}`;
const ended = new Promise((resolve) => {
  readEvent = (event) => {
    if (event.JobOrder?.JobOrderID !== jobId) return;
    const state = event.JobState[0].StateText.Text;
    console.log(jobId, state);
    if (["Ended", "Aborted"].includes(state)) resolve();
  };
});
const JobOrderParameters = [{ ID: "torque_spec", Value: "85Nm" }];
const order = { JobOrderID: jobId, WorkMasterID: [{ ID: "WM-FIRST" }], JobOrderParameters };
await call(`${METHOD}.StoreAndStart.v2`, { JobOrder: order });
await ended;

const { JobResponse } = await call(`${METHOD}.RequestJobResponseByJobOrderID.v2`, { JobOrderID: jobId });
for (const result of JobResponse.JobResponseData) console.log("result", JSON.stringify(result));
await call(`${METHOD}.Clear.v2`, { JobOrderID: jobId });
await client.endAsync();
