// An OPC UA client on another stack (node-opcua) that shows, answers and shelves alarms: one line of input each.
//
//   node alarms.js opc.tcp://...
//   ["install", {}]                             install the alarm list of node-opcua: it subscribes and refreshes
//   ["alarms", {}]                              answer the alarms of that list
//   ["acknowledge", {"condition": ID, ...}]     acknowledge what the list shows; also "confirm" and "comment"
//   ["call", {"object", "method", "inputs"}]    call a method, answer its status
//   ["monitor", {"node", "fields", "where"}]    subscribe to events; each is a line {"event": {...}, "at": MS}
//   ["flood", {"seconds", "object", "event"}]   subscribe, refresh and acknowledge as fast as it goes
//   ["browse", {"node"}]                        answer everything below a node, with the status of each value
"use strict";

console.log = console.warn = console.error;

const readline = require("node:readline");
const opcua = require("node-opcua-client");
const { coerceNodeId, NodeId } = require("node-opcua-nodeid");

const answer = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function plain(value) {
  if (Buffer.isBuffer(value)) return value.toString("hex");
  if (value instanceof NodeId) return value.toString();
  if (value instanceof Date) return value.getTime();
  if (value instanceof opcua.StatusCode) return value.name;
  if (value instanceof opcua.LocalizedText) return value.text;
  return value === undefined ? null : value;
}

const FIELDS = ["EventId", "EventType", "SourceName", "ConditionName", "BranchId", "Retain", "Severity", "Message",
  "ActiveState.Id", "AckedState.Id", "ConfirmedState.Id", "EnabledState.Id", "ShelvingState.CurrentState",
  "SuppressedOrShelved", "LastSeverity", "Comment", "ClientUserId", "Quality", "InputNode", "LimitState.CurrentState",
  "ConditionId"];

class Client {
  async connect(endpoint) {
    this.client = opcua.OPCUAClient.create({
      applicationName: "alarms of another make",
      connectionStrategy: { maxRetry: 0 },
      endpointMustExist: false,
      transportTimeout: 60000,
    });
    await this.client.connect(endpoint);
    this.session = await this.client.createSession();
  }

  async install() {
    this.list = await opcua.installAlarmMonitoring(this.session);
  }

  alarms() {
    return this.list.alarms().map((alarm) => this.shown(alarm));
  }

  shown(alarm) {
    const field = (name) => name.split(".").reduce((at, part) => at?.[part[0].toLowerCase() + part.slice(1)], alarm.fields);
    return Object.fromEntries(FIELDS.map((name) => [name, plain(field(name)?.value)]));
  }

  of(condition) {
    const found = this.list.alarms().find((alarm) => alarm.conditionId.toString() === condition);
    if (!found) throw new Error(`no alarm ${condition}`);
    return found;
  }

  async acknowledge({ condition, comment }) {
    return (await this.of(condition).acknowledge(this.session, comment)).name;
  }

  async confirm({ condition, comment }) {
    return (await this.of(condition).confirm(this.session, comment)).name;
  }

  async comment({ condition, comment }) {
    return (await this.session.addCommentCondition(condition, this.of(condition).eventId, comment)).name;
  }

  // Inputs are [type, value]; an EventId is hexadecimal text.
  async call({ object, method, inputs = [] }) {
    const inputArguments = inputs.map(([dataType, value]) => ({
      dataType: opcua.DataType[dataType],
      value: dataType === "ByteString" ? Buffer.from(value, "hex") : dataType === "LocalizedText" ? { text: value } : value,
    }));
    const methodId = await this.method(object, method);
    const result = await this.session.call({ objectId: coerceNodeId(object), methodId, inputArguments });
    return result.statusCode.name;
  }

  // A NodeId, or the browse name of a method of the object.
  async method(object, method) {
    if (/^(ns=\d+;)?[is]=/.test(method)) return coerceNodeId(method);
    return this.session.findMethodId(object, method);
  }

  async monitor({ node = "i=2253", fields = FIELDS, where = null, queueSize = 1000, interval = 50 }) {
    const subscription = await this.session.createSubscription2({
      requestedPublishingInterval: interval,
      requestedLifetimeCount: 1000,
      requestedMaxKeepAliveCount: 10,
      publishingEnabled: true,
    });
    const filter = opcua.constructEventFilter(fields, where ? opcua.ofType(where) : undefined);
    const item = await subscription.monitor(
      { nodeId: coerceNodeId(node), attributeId: opcua.AttributeIds.EventNotifier },
      { filter, queueSize, samplingInterval: 0, discardOldest: true },
      opcua.TimestampsToReturn.Both,
    );
    item.on("changed", (values) => {
      answer({ at: Date.now(), event: Object.fromEntries(fields.map((name, at) => [name, plain(values[at].value)])) });
    });
    return { status: item.statusCode.name, subscription: subscription.subscriptionId, item: item.monitoredItemId };
  }

  // Subscribe, refresh and acknowledge for some seconds, as fast as the server answers; answer the counts of statuses.
  async flood({ seconds, object, event, width = 8 }) {
    const counts = {};
    const until = Date.now() + seconds * 1000;
    const filter = opcua.constructEventFilter(FIELDS);
    const one = async () => {
      while (Date.now() < until) {
        const subscription = await this.session.createSubscription2({ requestedPublishingInterval: 50,
          requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 10, publishingEnabled: true });
        await subscription.monitor({ nodeId: coerceNodeId("i=2253"), attributeId: opcua.AttributeIds.EventNotifier },
          { filter, queueSize: 1000, samplingInterval: 0, discardOldest: true }, opcua.TimestampsToReturn.Both);
        const id = { dataType: opcua.DataType.UInt32, value: subscription.subscriptionId };
        const inputArguments = [{ dataType: opcua.DataType.ByteString, value: Buffer.from(event, "hex") },
          { dataType: opcua.DataType.LocalizedText, value: { text: "x" } }];
        const calls = [{ objectId: coerceNodeId("i=2782"), methodId: coerceNodeId("i=3875"), inputArguments: [id] },
          { objectId: coerceNodeId(object), methodId: coerceNodeId("i=9111"), inputArguments }];
        for (let round = 0; round < 20 && Date.now() < until; round += 1) {
          for (const result of await this.session.call(calls)) {
            counts[result.statusCode.name] = (counts[result.statusCode.name] || 0) + 1;
          }
        }
        await subscription.terminate();
      }
    };
    await Promise.all(Array.from({ length: width }, one));
    return counts;
  }

  async browse({ node }) {
    const found = [];
    const visit = async (at, path) => {
      const { references } = await this.session.browse({ nodeId: at, referenceTypeId: "Aggregates", includeSubtypes: true,
        browseDirection: opcua.BrowseDirection.Forward, nodeClassMask: 0, resultMask: 63 });
      for (const each of references || []) {
        const name = path ? `${path}/${each.browseName.name}` : each.browseName.name;
        if (each.nodeClass === opcua.NodeClass.Variable) {
          const value = await this.session.read({ nodeId: each.nodeId, attributeId: opcua.AttributeIds.Value });
          found.push([name, value.statusCode.name, value.value.dataType, plain(value.value.value)]);
        } else {
          found.push([name, opcua.NodeClass[each.nodeClass], null, each.nodeId.toString()]);
        }
        if (each.nodeClass !== opcua.NodeClass.Method) await visit(each.nodeId, name);
      }
    };
    await visit(coerceNodeId(node), "");
    return found;
  }
}

async function main([endpoint]) {
  const client = new Client();
  await client.connect(endpoint);
  answer({ done: "connected" });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, parameters] = JSON.parse(line);
    try {
      answer({ done: name, answer: plain(await client[name](parameters)) });
    } catch (error) {
      answer({ done: name, error: error.stack });
    }
  }
  process.exit(0);
}

main(process.argv.slice(2)).catch((error) => {
  answer({ error: error.message });
  process.exit(1);
});
