// A Sparkplug host on the npm packages mqtt and sparkplug-payload: prints each message that it receives as a line of
// JSON, and publishes those that it reads. Arguments: the port of the broker; the group, without it all.
"use strict";
const mqtt = require("mqtt");
const payloads = require("sparkplug-payload").get("spBv1.0");

const { Payload } = require("sparkplug-payload/lib/sparkplugPayloadProto").org.eclipse.tahu.protobuf;

// Messages with data name metrics by their alias and leave out their type; the package needs it to find the value.
const types = {};
const decode = (topic, body) => {
  const [, group, kind, node] = topic.split("/");
  const raw = Payload.decode(body);
  for (const metric of raw.metrics) {
    const key = `${group}/${node}/${metric.alias}`;
    if (kind.endsWith("BIRTH")) types[key] = metric.datatype;
    else if (!metric.datatype) metric.datatype = types[key];
  }
  const found = payloads.decodePayload(Payload.encode(raw).finish());
  if (!kind.endsWith("BIRTH")) found.metrics.forEach((each, index) => (each.sentType = Payload.decode(body).metrics[index].datatype));
  return found;
};

const plain = (_name, value) =>
  value && typeof value === "object" && typeof value.toNumber === "function" ? value.toNumber() : value;
const print = (line) => process.stdout.write(JSON.stringify(line, plain) + "\n");

const topics = process.argv[3] ? [`spBv1.0/${process.argv[3]}/#`, "spBv1.0/STATE/#"] : "spBv1.0/#";
const client = mqtt.connect(`mqtt://127.0.0.1:${process.argv[2]}`, { protocolVersion: 5 });
client.on("connect", () => client.subscribe(topics, { qos: 1, rap: true }, () => print({ ready: true })));
client.on("message", (topic, body, packet) => {
  if (/\/[ND]CMD\//.test(topic)) return;
  const line = { topic, qos: packet.qos, retain: packet.retain, dup: packet.dup };
  print(topic.includes("/STATE/") ? { ...line, text: body.toString() } : { ...line, payload: decode(topic, body) });
});

require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (text) => {
    const { topic, payload, body, qos = 0, retain = false, repeat = 1 } = JSON.parse(text);
    const data = payload ? Buffer.from(payloads.encodePayload(payload)) : Buffer.from(body || "", "utf8");
    for (let number = 0; number < repeat; number += 1) client.publish(topic, data, { qos, retain });
  })
  .on("close", () => process.exit(0));
