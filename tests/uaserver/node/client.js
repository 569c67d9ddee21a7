// An OPC UA client on another stack (node-opcua): does what each line of its input asks, answers each with a line of JSON.
//
//   node client.js '{"endpoint": "opc.tcp://...", "policy": "Basic256Sha256", "certificate": "...", "key": "...",
//                    "pki": "...", "applicationUri": "...", "user": "...", "password": "..."}'
"use strict";

// Standard output is for answers; node-opcua writes what it has to say there too.
console.log = console.warn = console.error;

const fs = require("node:fs");
const readline = require("node:readline");
const {
  AttributeIds,
  ClientMonitoredItem,
  ClientReverseConnect,
  ClientSubscription,
  DataType,
  MessageSecurityMode,
  OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
  UserTokenType,
  VariantArrayType,
  constructEventFilter,
  coerceLocalizedText,
  coerceNodeId,
  makeBrowsePath,
} = require("node-opcua-client");
const { NumericRange } = require("node-opcua-numeric-range");
const { BinaryStream } = require("node-opcua-binary-stream");
const { TrustListDataType } = require("node-opcua-types");
const { readCertificateChain } = require("node-opcua-crypto");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");

const MACHINERY = "http://opcfoundation.org/UA/Machinery/";
const JOBS = "http://opcfoundation.org/UA/Machinery/Jobs/";
const ISA95 = "http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/";

const told = (line) => process.stdout.write(JSON.stringify(line) + "\n");

class Plant {
  constructor(session, client) {
    this.session = session;
    this.client = client;
    this.subscription = null;
  }

  async leave() {
    await this.session.close();
    await this.client.disconnect();
  }

  async index(uri) {
    return (await this.session.readNamespaceArray()).indexOf(uri);
  }

  // Follow a path of [namespace URI, name] from Objects.
  async find(path) {
    const steps = await Promise.all(path.map(async ([uri, name]) => `/${await this.index(uri)}:${name}`));
    const result = await this.session.translateBrowsePath(makeBrowsePath("ObjectsFolder", steps.join("")));
    if (!result.statusCode.isGood()) throw new Error(`${steps.join("")}: ${result.statusCode}`);
    return result.targets[0].targetId;
  }

  async part(name) {
    const machines = (await this.session.readNamespaceArray()).find((uri) => uri.endsWith(":machines"));
    return this.find([
      [MACHINERY, "Machines"],
      [machines, "station-1"],
      [MACHINERY, "MachineryBuildingBlocks"],
      [JOBS, "JobManagement"],
      [JOBS, name],
    ]);
  }

  async member(part, name) {
    const index = name === "CurrentState" ? 0 : await this.index(ISA95); // the one member it inherits
    const browsePath = makeBrowsePath(await this.part(part), `/${index}:${name}`);
    return (await this.session.translateBrowsePath(browsePath)).targets[0].targetId;
  }

  async browse({ part }) {
    const result = await this.session.browse(await this.part(part));
    return result.references.map((reference) => reference.browseName.name).sort();
  }

  // Read a value, or a part of it; what is too long for a line of the answer is counted.
  async read({ part, name, range, counted }) {
    const value = await this.session.read({
      nodeId: await this.member(part, name),
      attributeId: AttributeIds.Value,
      indexRange: range ? new NumericRange(range) : undefined,
    });
    return { status: value.statusCode.name, value: counted ? value.value.value.length : value.value.value };
  }

  async write({ part, name }) {
    const statusCode = await this.session.write({
      nodeId: await this.member(part, name),
      attributeId: AttributeIds.Value,
      value: { value: { dataType: DataType.UInt16, value: 1 } },
    });
    return statusCode.name;
  }

  // Call a method with a job order (as an object), a job order id (a text), states (an array), and a comment.
  async call({ part, name, order, id, states, comment }) {
    const inputArguments = [];
    if (order) {
      const type = coerceNodeId(`ns=${await this.index(ISA95)};i=3008`);
      const object = await this.session.constructExtensionObject(type, {
        ...order,
        description: [coerceLocalizedText("of another make")],
      });
      inputArguments.push({ dataType: DataType.ExtensionObject, value: object });
    }
    if (id) inputArguments.push({ dataType: DataType.String, value: id });
    if (states) {
      const type = coerceNodeId(`ns=${await this.index(ISA95)};i=3006`);
      const value = await Promise.all(states.map((state) => this.session.constructExtensionObject(type, state)));
      inputArguments.push({ dataType: DataType.ExtensionObject, arrayType: VariantArrayType.Array, value });
    }
    if (comment !== undefined) {
      const value = comment.map((text) => coerceLocalizedText(text));
      inputArguments.push({ dataType: DataType.LocalizedText, arrayType: VariantArrayType.Array, value });
    }
    const result = await this.session.call({
      objectId: await this.part(part),
      methodId: await this.member(part, name),
      inputArguments,
    });
    const outputs = (result.outputArguments || []).map((output) => output.value);
    return { status: result.statusCode.name, outputs };
  }

  // Call a method by its NodeIds; a ByteString is base64, both ways.
  async method({ object, method, inputs }) {
    const bytes = (each) => (each === null ? null : Buffer.from(each, "base64"));
    const isArray = (dataType, value) => dataType === "ByteString" && Array.isArray(value);
    const coerced = (dataType, value) => {
      if (dataType === "NodeId") return coerceNodeId(value);
      if (dataType !== "ByteString") return value;
      return Array.isArray(value) ? value.map(bytes) : bytes(value);
    };
    const inputArguments = inputs.map(([dataType, value]) => ({
      dataType: DataType[dataType],
      arrayType: isArray(dataType, value) ? VariantArrayType.Array : VariantArrayType.Scalar,
      value: coerced(dataType, value),
    }));
    const result = await this.session.call({ objectId: object, methodId: method, inputArguments });
    const shown = (value) =>
      Buffer.isBuffer(value) ? value.toString("base64") : value?.constructor?.name === "NodeId" ? value.toString() : value;
    const outputs = (result.outputArguments || []).map(({ value }) =>
      Array.isArray(value) ? value.map(shown) : shown(value));
    return { status: result.statusCode.name, outputs };
  }

  // Decode and encode a TrustListDataType by the codec of this stack.
  decodeTrustList({ data }) {
    const list = new TrustListDataType();
    list.decode(new BinaryStream(Buffer.from(data, "base64")));
    const texts = (entries) => (entries || []).map((each) => each.toString("base64"));
    return {
      masks: list.specifiedLists,
      trusted: texts(list.trustedCertificates),
      trustedCrls: texts(list.trustedCrls),
      issuers: texts(list.issuerCertificates),
      issuerCrls: texts(list.issuerCrls),
    };
  }

  encodeTrustList({ masks, trusted = [], trustedCrls = [], issuers = [], issuerCrls = [] }) {
    const bytes = (entries) => entries.map((each) => Buffer.from(each, "base64"));
    const list = new TrustListDataType({
      specifiedLists: masks,
      trustedCertificates: bytes(trusted),
      trustedCrls: bytes(trustedCrls),
      issuerCertificates: bytes(issuers),
      issuerCrls: bytes(issuerCrls),
    });
    const stream = new BinaryStream(list.binaryStoreSize());
    list.encode(stream);
    return stream.buffer.toString("base64");
  }

  async subscribe({ part, name }) {
    this.subscription ??= ClientSubscription.create(this.session, {
      requestedPublishingInterval: 50,
      requestedLifetimeCount: 1000,
      requestedMaxKeepAliveCount: 10,
      publishingEnabled: true,
    });
    const item = ClientMonitoredItem.create(
      this.subscription,
      { nodeId: await this.member(part, name), attributeId: AttributeIds.Value },
      { samplingInterval: 50, queueSize: 10, discardOldest: true },
      TimestampsToReturn.Both,
    );
    item.on("changed", (value) => told({ changed: name, value: value.value.value }));
    return new Promise((resolve) => item.once("initialized", () => resolve(item.statusCode.name)));
  }

  async listen() {
    const isa95 = await this.index(ISA95);
    const fields = ["EventType", "SourceName", "Message", "Severity", "Time"];
    const filter = constructEventFilter([...fields, ...["JobOrder", "JobState", "JobResponse"].map((n) => `${isa95}:${n}`)]);
    const item = ClientMonitoredItem.create(
      this.subscription,
      { nodeId: coerceNodeId("i=2253"), attributeId: AttributeIds.EventNotifier },
      { samplingInterval: 0, queueSize: 100, discardOldest: true, filter },
      TimestampsToReturn.Both,
    );
    item.on("changed", (values) => told({ event: values.map((field) => field.value) }));
    return new Promise((resolve) => item.once("initialized", () => resolve(item.statusCode.name)));
  }
}

// Connect by the policy and as the user of the options.
async function enter(options, manager) {
  const client = OPCUAClient.create({
    applicationName: "another make",
    applicationUri: options.applicationUri,
    certificateFile: options.certificate,
    privateKeyFile: options.key,
    clientCertificateManager: manager,
    securityMode: MessageSecurityMode.SignAndEncrypt,
    securityPolicy: SecurityPolicy[options.policy],
    connectionStrategy: { maxRetry: 0 },
    endpointMustExist: false,
    serverCertificate: options.serverCertificate && readCertificateChain(options.serverCertificate)[0],
  });
  await (options.listener ? client.connectReverse(options.listener, options.expected) : client.connect(options.endpoint));
  const identity = options.userCertificate
    ? {
        type: UserTokenType.Certificate,
        certificateData: readCertificateChain(options.userCertificate)[0],
        privateKey: fs.readFileSync(options.userKey, "utf8"),
      }
    : { type: UserTokenType.UserName, userName: options.user, password: options.password };
  try {
    return new Plant(await client.createSession(identity), client);
  } catch (error) {
    await client.disconnect();
    throw error;
  }
}

async function main() {
  const options = JSON.parse(process.argv[2]);
  const automaticallyAcceptUnknownCertificate = options.authority === undefined;
  const manager = new OPCUACertificateManager({ rootFolder: options.pki, automaticallyAcceptUnknownCertificate });
  await manager.initialize();
  if (options.authority) {
    for (const each of readCertificateChain(options.authority)) await manager.addIssuer(each, false, true);
    for (const file of options.revocations) await manager.addRevocationList(fs.readFileSync(file));
  }
  if (options.listen) {
    options.listener = new ClientReverseConnect(options.listen);
    await options.listener.start();
  }
  const plants = [await enter(options, manager)];
  told({ done: "connected" });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [what, { at = 0, ...parameters }] = JSON.parse(line);
    try {
      // By "enter" one is there once more, in another way: the answer says where to do what is asked as that one.
      const answer = what === "enter"
        ? plants.push(await enter({ ...options, ...parameters }, manager)) - 1
        : await plants[at][what](parameters);
      told({ done: what, answer });
    } catch (error) {
      told({ done: what, error: error.message });
    }
  }
  for (const plant of plants) await plant.leave();
  await options.listener?.stop();
  manager.dispose?.();
}

main().catch((error) => {
  told({ error: error.message });
  process.exit(1);
});
