// An OPC UA client on an independent stack (node-opcua): prints one line of JSON for each thing that it has done.
//
//   node opcua_client.js ENDPOINT list                     the job ids in JobOrderList and whether the session still works
//   node opcua_client.js ENDPOINT hold SECONDS             keep one session and read once a second; print every failure
//   node opcua_client.js ENDPOINT watch SECONDS            subscribe to JobOrderList; print how many changes came
//   node opcua_client.js ENDPOINT delays SECONDS           read small values all the time; print percentiles of the delay
//   node opcua_client.js ENDPOINT flood COUNT SECONDS      read JobOrderList COUNT times in one request, again and again
//   node opcua_client.js ENDPOINT call OBJECT METHOD JSON  call a method with texts; print the status and the outputs
"use strict";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
console.log = console.warn = console.error;

const {
  AttributeIds,
  ClientMonitoredItem,
  ClientSubscription,
  MessageSecurityMode,
  OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
  makeBrowsePath,
} = require("node-opcua-client");

const MACHINERY = "http://opcfoundation.org/UA/Machinery/";
const JOBS = "http://opcfoundation.org/UA/Machinery/Jobs/";
const ISA95 = "http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/";
const CLOCK = { nodeId: "ns=0;i=2258", attributeId: AttributeIds.Value };

async function findList(session) {
  const uris = await session.readNamespaceArray();
  const own = uris.findIndex((uri) => uri.startsWith("urn:") && !uri.endsWith("/types") && uris.indexOf(uri) > 1);
  const at = (uri) => uris.indexOf(uri);
  for (let index = own; index < uris.length; index += 1) {
    const path = `/${at(MACHINERY)}:Machines/${index}:station-1/${at(MACHINERY)}:MachineryBuildingBlocks` +
      `/${at(JOBS)}:JobManagement/${at(JOBS)}:JobOrderControl/${at(ISA95)}:JobOrderList`;
    const result = await session.translateBrowsePath(makeBrowsePath("ObjectsFolder", path));
    if (result.statusCode.isGood()) return { nodeId: result.targets[0].targetId, attributeId: AttributeIds.Value };
  }
  throw new Error("there is no JobOrderList below station-1");
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const deeds = {
  async call(session, objectId, methodId, texts) {
    const inputArguments = JSON.parse(texts).map((value) => ({ dataType: value === null ? "Null" : "String", value }));
    const result = await session.call({ objectId, methodId, inputArguments });
    print({ status: result.statusCode.name, outputs: (result.outputArguments || []).map((each) => Number(each.value[1])) });
  },

  async list(session) {
    const value = await session.read(await findList(session));
    print({ jobs: (value.value.value || []).map((each) => each.jobOrder.jobOrderID) });
  },

  async hold(session, seconds) {
    const end = Date.now() + 1000 * seconds;
    print({ holding: true });
    while (Date.now() < end) {
      const value = await session.read(CLOCK);
      if (!value.statusCode.isGood()) print({ failed: value.statusCode.name });
      await pause(200);
    }
    print({ held: true });
  },

  async watch(session, seconds) {
    const subscription = ClientSubscription.create(session, { requestedPublishingInterval: 100, publishingEnabled: true });
    const item = ClientMonitoredItem.create(subscription, await findList(session), { queueSize: 1 }, TimestampsToReturn.Both);
    let changes = 0;
    item.on("changed", () => { changes += 1; });
    await new Promise((done) => item.once("initialized", done));
    print({ watching: true });
    await pause(1000 * seconds);
    print({ changes });
  },

  async delays(session, seconds) {
    const end = Date.now() + 1000 * seconds;
    const delays = [];
    while (Date.now() < end) {
      const started = performance.now();
      await session.read(CLOCK);
      delays.push(performance.now() - started);
      await pause(10);
    }
    delays.sort((one, other) => one - other);
    const share = (part) => delays[Math.floor(delays.length * part)];
    print({ count: delays.length, p50: share(0.5), p99: share(0.99), longest: delays.at(-1) });
  },

  async flood(session, count, seconds) {
    const list = await findList(session);
    const requests = Array.from({ length: Number(count) }, () => list);
    const end = Date.now() + 1000 * seconds;
    print({ flooding: true });
    let answers = 0;
    while (Date.now() < end) {
      try {
        await session.read(requests);
      } catch (error) {
        print({ refused: error.message.split("\n")[0] });
        await pause(50);
      }
      answers += 1;
    }
    print({ answers });
  },
};

async function main([endpoint, deed, ...rest]) {
  const client = OPCUAClient.create({
    endpointMustExist: false,
    securityMode: MessageSecurityMode.None,
    securityPolicy: SecurityPolicy.None,
    connectionStrategy: { maxRetry: 3, initialDelay: 100, maxDelay: 1000 },
    transportTimeout: 60000,
  });
  client.on("connection_lost", () => print({ failed: "connection lost" }));
  await client.withSessionAsync(endpoint, (session) => deeds[deed](session, ...rest));
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => { process.stderr.write(`${error.stack}\n`); process.exit(1); },
);
