// An edge node on the npm package sparkplug-client. Arguments: the port of the broker, the group, the edge node.
// Reads lines {"birth": {"device or empty": metrics}} to set its births, {"data": metrics, "device": name},
// {"death": name} and {"stop": true}; prints {"born": true} after its births and {"rebirth": n}
// when it was asked for them.
"use strict";
const client = require("sparkplug-client").newClient({
  serverUrl: `mqtt://127.0.0.1:${process.argv[2]}`,
  username: "",
  password: "",
  groupId: process.argv[3],
  edgeNode: process.argv[4],
  clientId: `${process.argv[3]}-${process.argv[4]}`,
  version: "spBv1.0",
  publishDeath: true,
});

let births = null;
let ready = false;
let rebirths = 0;
const copy = (metrics) => JSON.parse(JSON.stringify(metrics));
const publishBirths = () => {
  if (!ready || !births) return;
  client.publishNodeBirth({ timestamp: Date.now(), metrics: copy(births[""] || []) });
  for (const device of Object.keys(births))
    if (device) client.publishDeviceBirth(device, { timestamp: Date.now(), metrics: copy(births[device]) });
  process.stdout.write(JSON.stringify({ born: true }) + "\n");
};
client.on("birth", () => {
  ready = true;
  publishBirths();
});
client.on("ncmd", (payload) => {
  if (payload.metrics.some((each) => each.name === "Node Control/Rebirth" && each.value === true)) {
    rebirths += 1;
    process.stdout.write(JSON.stringify({ rebirth: rebirths }) + "\n");
    publishBirths();
  }
});
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (text) => {
    const { birth, data, device, death, stop } = JSON.parse(text);
    if (birth) {
      births = birth;
      publishBirths();
    }
    if (data && device) client.publishDeviceData(device, { timestamp: Date.now(), metrics: data });
    else if (data) client.publishNodeData({ timestamp: Date.now(), metrics: data });
    if (death) client.publishDeviceDeath(death, { timestamp: Date.now() });
    if (stop) client.stop();
  });
