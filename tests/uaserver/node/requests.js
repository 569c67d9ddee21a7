// An OPC UA client on another stack (node-opcua) that sends single requests: one line of input each, one line of answer.
//
//   node requests.js opc.tcp://...
//   ["Read", {"nodesToRead": [...]}]        send ReadRequest, answer {"ok": ReadResponse} or {"fault": StatusCode}
//   ["find", {"from": NODE, "path": [...]}] follow browse names ("uri name"), answer the NodeId
//   ["connect", {}]                         open another session, answer its number; {"at": NUMBER} asks over it
//   ["notified", {"count": N}]              wait for so many notifications of publish responses
//
// In a request {"$": CLASS, ...} is an object of that class of node-opcua, {"$": "NodeId", "text": ...} a NodeId.
"use strict";

console.log = console.warn = console.error;

const readline = require("node:readline");
const opcua = require("node-opcua-client");
const types = require("node-opcua-types");
const { NodeId, coerceNodeId } = require("node-opcua-nodeid");
const { NumericRange } = require("node-opcua-numeric-range");

const answer = (line) => process.stdout.write(JSON.stringify(line) + "\n");

// Numbers of 64 bits as decimal text, buffers as hexadecimal text: JSON has neither.
function plain(value) {
  if (Buffer.isBuffer(value)) return value.toString("hex");
  if (value instanceof NodeId) return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (value instanceof opcua.StatusCode) return value.name;
  if (value && typeof value === "object") {
    const shown = {};
    for (const key of Object.keys(value)) {
      if (key === "_schema" || key.startsWith("$") || typeof value[key] === "function") continue;
      shown[key] = plain(value[key]);
    }
    return shown;
  }
  return value;
}

// Turn {"$": "NodeId", "text": "i=85"} and {"$": CLASS, ...} into objects of node-opcua.
function made(value) {
  if (Array.isArray(value)) return value.map(made);
  if (!value || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const fields = Object.fromEntries(Object.entries(value).filter(([key]) => key !== "$").map(([k, v]) => [k, made(v)]));
  if (!value.$) return fields;
  if (value.$ === "NodeId") return coerceNodeId(fields.text);
  if (value.$ === "Date") return new Date(fields.at);
  if (value.$ === "Buffer") return Buffer.from(fields.hex, "hex");
  if (value.$ === "NumericRange") return new NumericRange(fields.text);
  const Class = types[value.$] || opcua[value.$];
  if (!Class) throw new Error(`node-opcua has no class ${value.$}`);
  return new Class(fields);
}

class Client {
  async connect(endpoint) {
    this.client = opcua.OPCUAClient.create({
      applicationName: "another make",
      securityMode: opcua.MessageSecurityMode.None,
      securityPolicy: opcua.SecurityPolicy.None,
      connectionStrategy: { maxRetry: 0 },
      endpointMustExist: false,
      keepSessionAlive: false,
      transportTimeout: 60000,
    });
    await this.client.connect(endpoint);
    this.session = await this.client.createSession();
    this.notifications = [];
    this.publishing = 0;
  }

  send(name, parameters) {
    const Request = types[`${name}Request`] || opcua[`${name}Request`];
    const request = new Request(made(parameters));
    return new Promise((resolve) => {
      this.session.performMessageTransaction(request, (error, response) => {
        if (!error) return resolve({ ok: plain(response) });
        const fault = error.response?.responseHeader?.serviceResult?.name;
        return resolve({ fault: fault || error.message });
      });
    });
  }

  async find({ from, path }) {
    const uris = await this.session.readNamespaceArray();
    const steps = path.map((step) => {
      const at = step.lastIndexOf(" ");
      return at < 0 ? `/0:${step}` : `/${uris.indexOf(step.slice(0, at))}:${step.slice(at + 1)}`;
    });
    const result = await this.session.translateBrowsePath(opcua.makeBrowsePath(coerceNodeId(from), steps.join("")));
    return { ok: result.statusCode.isGood() ? result.targets[0].targetId.toString() : result.statusCode.name };
  }

  // Keep two Publish requests open and collect the notifications of their responses.
  async notified({ count, acknowledge = true }) {
    const pump = async (acks) => {
      this.publishing += 1;
      const { ok, fault } = await this.send("Publish", { subscriptionAcknowledgements: acks });
      this.publishing -= 1;
      if (fault) return;
      const { sequenceNumber, notificationData } = ok.notificationMessage;
      const done = [{ $: "SubscriptionAcknowledgement", subscriptionId: ok.subscriptionId, sequenceNumber }];
      if (notificationData?.length) this.notifications.push(...notificationData.map((data) => ({ subscription: ok.subscriptionId, ...data })));
      pump(notificationData?.length && acknowledge ? done : []);
    };
    while (this.publishing < 2) pump([]);
    while (this.notifications.length < count) await new Promise((done) => setTimeout(done, 5));
    return { ok: this.notifications.splice(0, count) };
  }

  // Read a value whose structures are decoded by their DataTypeDefinition.
  async structures({ of }) {
    const read = await this.session.read({ nodeId: coerceNodeId(of), attributeId: opcua.AttributeIds.Value });
    return { ok: plain(read.value.value) };
  }

  // Call a method with a job order whose parameters are nested to a depth.
  async callWithNestedOrder({ object, method, order, parameter, depth }) {
    const build = (type, fields) => this.session.constructExtensionObject(coerceNodeId(type), fields);
    let nested = null;
    for (let level = 0; level < depth; level += 1) {
      nested = await build(parameter, { ID: "p", value: {}, subparameters: nested ? [nested] : [] });
    }
    const value = await build(order, { jobOrderID: "deep", jobOrderParameters: [nested] });
    const inputArguments = [
      { dataType: opcua.DataType.ExtensionObject, value },
      { dataType: opcua.DataType.LocalizedText, arrayType: opcua.VariantArrayType.Array, value: [] },
    ];
    return this.callMethod(object, method, inputArguments);
  }

  // Call a method with one job state as its argument.
  async callWithState({ object, method, state }) {
    const uris = await this.session.readNamespaceArray();
    const type = coerceNodeId(3006, uris.indexOf("http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/"));
    const value = [await this.session.constructExtensionObject(type, { stateText: { text: state } })];
    const array = opcua.VariantArrayType.Array;
    return this.callMethod(object, method, [{ dataType: opcua.DataType.ExtensionObject, arrayType: array, value }]);
  }

  // Send a Publish request and cancel it by its handle. A new subscription answers the one before at once.
  async cancelPublish() {
    await this.send("Publish", { subscriptionAcknowledgements: [] });
    let handle = 0;
    const secureChannel = this.session._client._secureChannel;
    const perform = secureChannel.performMessageTransaction;
    secureChannel.performMessageTransaction = function (request, callback) {
      perform.call(this, request, callback);
      handle ||= request.requestHeader.requestHandle;
    };
    const published = this.send("Publish", { subscriptionAcknowledgements: [] });
    secureChannel.performMessageTransaction = perform;
    const { ok } = await this.send("Cancel", { requestHandle: handle });
    return { ok: { count: ok.cancelCount, fault: (await published).fault } };
  }

  callMethod(object, method, inputArguments) {
    const methodsToCall = [{ objectId: coerceNodeId(object), methodId: coerceNodeId(method), inputArguments }];
    return this.send("Call", { methodsToCall });
  }

  async close() {
    await this.session.close();
    await this.client.disconnect();
  }
}

async function main([endpoint]) {
  const clients = [new Client()];
  await clients[0].connect(endpoint);
  answer({ ok: "connected" });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, { at = 0, ...parameters }] = JSON.parse(line);
    try {
      if (name === "connect") {
        const client = new Client();
        await client.connect(endpoint);
        answer({ ok: clients.push(client) - 1 });
      } else if (["find", "notified", "structures", "cancelPublish", "callWithNestedOrder", "callWithState", "close"].includes(name)) {
        answer((await clients[at][name](parameters)) || { ok: null });
      } else {
        answer(await clients[at].send(name, parameters));
      }
    } catch (error) {
      answer({ error: error.stack });
    }
  }
  process.exit(0);
}

main(process.argv.slice(2)).catch((error) => {
  answer({ error: error.message });
  process.exit(1);
});
