// An OPC UA client on an independent stack (node-opcua): prints one line of JSON for each thing that it has done.
//
//   node opcua_client.js ENDPOINT list                     the job ids in JobOrderList and whether the session still works
//   node opcua_client.js ENDPOINT hold SECONDS             keep one session and read once a second; print every failure
//   node opcua_client.js ENDPOINT watch SECONDS            subscribe to JobOrderList; print how many changes came
//   node opcua_client.js ENDPOINT delays SECONDS           read small values all the time; print percentiles of the delay
//   node opcua_client.js ENDPOINT limits                   the limits that the server names, and those that it holds
//   node opcua_client.js ENDPOINT faults                   the answers to wrong arguments of standard services
//   node opcua_client.js ENDPOINT counters                 what the diagnostics count of a subscription
//   node opcua_client.js ENDPOINT tree                     the variables below Objects and Types without a value, and the
//                                                          methods that take one argument too few or one too many; what
//                                                          is below Objects: the names, the methods of a JobOrderControl,
//                                                          the nodes without a description, the dates of 1601
//   node opcua_client.js ENDPOINT flood COUNT SECONDS      read JobOrderList COUNT times in one request, again and again
//   node opcua_client.js ENDPOINT history NODE FROM TO     read raw values of a variable from an instant to another one, in
//                                                          ISO 8601, 70 at a time; print status and instants
//   node opcua_client.js ENDPOINT call OBJECT METHOD JSON  call a method with texts; print the status and the outputs
//   node opcua_client.js ENDPOINT calls FOLDER             for each line of input, [USER, PASSWORD, OBJECT, METHOD, TEXTS]:
//                                                          the same, encrypted, in a session of this user; FOLDER has
//                                                          the certificate own.der and its key own.pem
"use strict";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
console.log = console.warn = console.error;

const types = require("node-opcua-types");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");
const {
  AttributeIds,
  ClientMonitoredItem,
  ClientSubscription,
  MessageSecurityMode,
  NodeClass,
  OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
  UserTokenType,
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

// Every node below Objects and Types: its path, its owner, whether a type declares it, whether it belongs to a method.
async function walk(session) {
  const seen = new Map();
  let level = [["i=85", "Objects", false, false], ["i=86", "Types", false, false]];
  while (level.length) {
    const some = level.splice(0, 50);
    const asked = some.map(([nodeId]) => ({
      nodeId, browseDirection: 0, referenceTypeId: "i=33", includeSubtypes: true, nodeClassMask: 0, resultMask: 63,
    }));
    const answers = await session.browse(asked);
    for (let index = 0; index < answers.length; index += 1) {
      let { references, continuationPoint } = answers[index];
      while (continuationPoint && continuationPoint.length) {
        const next = await session.browseNext(continuationPoint, false);
        references = [...references, ...next.references];
        continuationPoint = next.continuationPoint;
      }
      const [owner, above, isDeclaredAbove, isMethodAbove] = some[index];
      for (const { nodeId, browseName, nodeClass } of references || []) {
        const id = nodeId.toString();
        if (seen.has(id)) continue;
        const path = `${above}/${browseName.name}`;
        const isDeclared = isDeclaredAbove || nodeClass === NodeClass.ObjectType || nodeClass === NodeClass.VariableType;
        seen.set(id, { nodeId: id, path, owner, nodeClass, isDeclared, ofMethod: isMethodAbove });
        level.push([id, path, isDeclared, nodeClass === NodeClass.Method]);
      }
    }
  }
  return [...seen.values()];
}

const send = (session, name, parameters) => new Promise((done) => {
  session.performMessageTransaction(new types[`${name}Request`](parameters), (error, response) => {
    done(error ? { fault: error.response?.responseHeader?.serviceResult?.name || error.message } : response);
  });
});

async function answerOf(session, name, parameters) {
  return (await send(session, name, parameters)).fault || "Good";
}

const SUBSCRIPTION = {
  requestedPublishingInterval: 1, requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 10, publishingEnabled: true,
};

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const newClient = (options = {}) => OPCUAClient.create({
  endpointMustExist: false,
  securityMode: MessageSecurityMode.None,
  securityPolicy: SecurityPolicy.None,
  connectionStrategy: { maxRetry: 3, initialDelay: 100, maxDelay: 1000 },
  transportTimeout: 60000,
  ...options,
});

async function called(session, objectId, methodId, texts) {
  const inputArguments = texts.map((value) => ({ dataType: value === null ? "Null" : "String", value }));
  const result = await session.call({ objectId, methodId, inputArguments });
  const outputs = (result.outputArguments || []).map(({ value: [high, low] }) => high * 2 ** 32 + low);
  return { status: result.statusCode.name, outputs };
}

const deeds = {
  async call(session, objectId, methodId, texts) {
    print(await called(session, objectId, methodId, JSON.parse(texts)));
  },

  async calls(anonymous, folder) {
    const manager = new OPCUACertificateManager({ rootFolder: `${folder}/pki`, automaticallyAcceptUnknownCertificate: true });
    await manager.initialize();
    const client = newClient({
      applicationUri: "urn:example:client",
      certificateFile: `${folder}/own.der`,
      privateKeyFile: `${folder}/own.pem`,
      clientCertificateManager: manager,
      securityMode: MessageSecurityMode.SignAndEncrypt,
      securityPolicy: SecurityPolicy.Basic256Sha256,
    });
    await client.connect(process.argv[2]);
    for await (const line of require("node:readline").createInterface({ input: process.stdin })) {
      const [userName, password, objectId, methodId, texts] = JSON.parse(line);
      const session = await client.createSession({ type: UserTokenType.UserName, userName, password });
      print(await called(session, objectId, methodId, texts));
      await session.close();
    }
    await client.disconnect();
  },

  async history(session, nodeId, from, to) {
    const historyReadDetails = new types.ReadRawModifiedDetails({
      isReadModified: false, startTime: new Date(from), endTime: new Date(to), numValuesPerNode: 70, returnBounds: false,
    });
    const instants = [];
    let continuationPoint;
    let status;
    do {
      const nodesToRead = [{ nodeId, continuationPoint }];
      const answer = await send(session, "HistoryRead", { historyReadDetails, timestampsToReturn: TimestampsToReturn.Source, nodesToRead });
      const [result] = answer.results;
      status = result.statusCode.name;
      for (const value of result.historyData?.dataValues || []) instants.push(value.sourceTimestamp.getTime());
      continuationPoint = result.continuationPoint;
    } while (continuationPoint && continuationPoint.length);
    print({ status, instants });
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

  async limits(session) {
    const named = ["i=24095", "i=24096", "i=24098", "i=24104", "i=11705", "i=11710"]
      .map((nodeId) => ({ nodeId, attributeId: AttributeIds.Value }));
    const values = (await session.read(named)).map((each) => each.value.value);
    const first = await send(session, "CreateSubscription", SUBSCRIPTION);
    let subscriptions = 1;
    let refusal = "Good";
    while ((refusal = await answerOf(session, "CreateSubscription", SUBSCRIPTION)) === "Good") subscriptions += 1;
    const reads = (count) => answerOf(session, "Read", { nodesToRead: Array.from({ length: count }, () => CLOCK) });
    const item = { itemToMonitor: CLOCK, monitoringMode: 2, requestedParameters: { clientHandle: 1, queueSize: 1000 } };
    const items = await send(session, "CreateMonitoredItems", { subscriptionId: first.subscriptionId, itemsToCreate: [item] });
    print({
      named: values,
      subscriptions,
      refusal,
      interval: first.revisedPublishingInterval,
      queue: items.results[0].revisedQueueSize,
      reads: [await reads(values[4]), await reads(values[4] + 1)],
    });
  },

  async faults(session) {
    const list = await findList(session);
    const browsed = { nodeId: "i=85", browseDirection: 0, referenceTypeId: "i=33", includeSubtypes: true, resultMask: 63 };
    const read = async (item, others) => {
      const answer = await send(session, "Read", { nodesToRead: [item], ...others });
      return answer.fault || answer.results[0].statusCode.name;
    };
    const times = [];
    for (const timestampsToReturn of [0, 1, 2, 3]) {
      const [value] = (await send(session, "Read", { nodesToRead: [CLOCK], timestampsToReturn })).results;
      times.push([value.sourceTimestamp !== null, value.serverTimestamp !== null]);
    }
    const made = await send(session, "CreateSubscription", SUBSCRIPTION);
    print({
      view: await answerOf(session, "Browse", { view: { viewId: "i=87" }, nodesToBrowse: [browsed] }),
      encodings: [
        await read({ ...list, dataEncoding: { namespaceIndex: 0, name: "Default Binary" } }),
        await read({ ...list, dataEncoding: { namespaceIndex: 0, name: "Default JSON" } }),
        await read({ ...CLOCK, dataEncoding: { namespaceIndex: 0, name: "Default Binary" } }),
      ],
      times,
      timestamps: await answerOf(session, "Read", { nodesToRead: [CLOCK], timestampsToReturn: 4 }).catch((error) => error.message),
      age: await answerOf(session, "Read", { nodesToRead: [CLOCK], maxAge: -1 }),
      republish: await answerOf(session, "Republish", { subscriptionId: made.subscriptionId, retransmitSequenceNumber: 77 }),
      others: await answerOf(session, "Republish", { subscriptionId: 4_000_000, retransmitSequenceNumber: 1 }),
      nothing: await answerOf(session, "Read", { nodesToRead: [] }),
    });
  },

  async counters(session) {
    const subscription = ClientSubscription.create(session, { ...SUBSCRIPTION, requestedPublishingInterval: 100, priority: 7 });
    const asked = { samplingInterval: 50, queueSize: 3 };
    const item = ClientMonitoredItem.create(subscription, CLOCK, asked, TimestampsToReturn.Both);
    await new Promise((done) => item.once("changed", done));
    const id = subscription.subscriptionId;
    await send(session, "ModifySubscription", { subscriptionId: id, ...SUBSCRIPTION, priority: 9 });
    for (const publishingEnabled of [false, true]) {
      await send(session, "SetPublishingMode", { publishingEnabled, subscriptionIds: [id] });
    }
    await send(session, "Republish", { subscriptionId: id, retransmitSequenceNumber: 77_777 });
    await pause(2500);
    const value = await session.read({ nodeId: "i=2290", attributeId: AttributeIds.Value });
    const found = value.value.value.find((each) => each.subscriptionId === id);
    print(Object.fromEntries(Object.entries(found).filter(([, each]) => typeof each === "number")));
  },

  async tree(session) {
    const found = await walk(session);
    const variables = found.filter((node) => node.nodeClass === NodeClass.Variable);
    const empty = [];
    const dates = [];
    for (let at = 0; at < variables.length; at += 50) {
      const some = variables.slice(at, at + 50);
      const values = await session.read(some.map(({ nodeId }) => ({ nodeId, attributeId: AttributeIds.Value })));
      values.forEach((value, index) => {
        const { path, isDeclared, ofMethod } = some[index];
        if (!isDeclared && value.value.value instanceof Date && value.value.value.getUTCFullYear() === 1601) dates.push(path);
        const isEmpty = value.statusCode.value !== 0 || value.value.value === null || value.value.value === undefined;
        // A type declares its variables; their values are those of the instances (OPC 10000-3, 6.2.6).
        if (isEmpty && (ofMethod || !isDeclared)) empty.push([path, value.statusCode.name]);
      });
    }
    const methods = [];
    for (const { nodeId, path, owner } of found.filter((node) => node.nodeClass === NodeClass.Method && !node.isDeclared)) {
      const inputs = found.find((node) => node.owner === nodeId && node.path.endsWith("InputArguments"));
      const taken = inputs ? (await session.read({ nodeId: inputs.nodeId, attributeId: AttributeIds.Value })).value.value : [];
      const count = taken.length;
      const call = async (many) => (await session.call({
        objectId: owner, methodId: nodeId, inputArguments: Array.from({ length: many }, () => ({ dataType: "Null" })),
      })).statusCode.name;
      methods.push([path, count, count ? await call(count - 1) : null, await call(count + 1)]);
    }
    const wrong = methods.filter(([, , few, many]) => (few && few !== "BadArgumentsMissing") || many !== "BadTooManyArguments");
    const instances = found.filter((node) => node.path.startsWith("Objects/"));
    const undescribed = [];
    for (let at = 0; at < instances.length; at += 50) {
      const some = instances.slice(at, at + 50);
      const values = await session.read(some.map(({ nodeId }) => ({ nodeId, attributeId: AttributeIds.Description })));
      values.forEach((value, index) => { if (!value.value.value?.text) undescribed.push(some[index].path); });
    }
    const last = (path) => path.slice(path.lastIndexOf("/") + 1);
    const objects = instances.filter((node) => node.owner === "i=85").map(({ path }) => last(path));
    const order = instances.filter((node) => node.nodeClass === NodeClass.Method && node.path.includes("/JobOrderControl/"))
      .map(({ path }) => last(path));
    print({ variables: variables.length, empty, methods: methods.length, wrong, dates, undescribed, objects, order });
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
  const client = newClient();
  client.on("connection_lost", () => print({ failed: "connection lost" }));
  await client.withSessionAsync(endpoint, (session) => deeds[deed](session, ...rest));
}

main(process.argv.slice(2)).then(
  // A line above 64 kB takes more than one write to a pipe.
  () => process.stdout.write("", () => process.exit(0)),
  (error) => { process.stderr.write(`${error.stack}\n`); process.exit(1); },
);
