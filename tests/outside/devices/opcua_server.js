// What the simulated controller and the simulated camera on an independent stack (node-opcua) have in common.
//
// Each prints one line of JSON for every thing that it does, and reads orders from its standard input, one a line.
"use strict";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
console.log = console.warn = console.error;

const { OPCUAServer } = require("node-opcua-server");
const { MessageSecurityMode, SecurityPolicy } = require("node-opcua-secure-channel");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");
const { DataType, Variant } = require("node-opcua-variant");
const { StatusCodes } = require("node-opcua-status-code");
const { nodesets } = require("node-opcua-nodesets");

let answerMs = 0;
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Serve node sets at a port of the loopback address; `build` adds the device to the address space, and may break every
// connection by its second argument. An encrypted server
// has no other endpoint, and knows the clients whose certificates are in trusted/certs of its directory.
async function serve(port, directory, models, build, encrypted = false) {
  const server = new OPCUAServer({
    port: Number(port),
    host: "127.0.0.1",
    hostname: "127.0.0.1",
    nodeset_filename: ["standard", ...models].map((name) => nodesets[name]),
    securityModes: [encrypted ? MessageSecurityMode.SignAndEncrypt : MessageSecurityMode.None],
    securityPolicies: [encrypted ? SecurityPolicy.Basic256Sha256 : SecurityPolicy.None],
    serverCertificateManager: new OPCUACertificateManager({ rootFolder: directory, automaticallyAcceptUnknownCertificate: !encrypted }),
    buildInfo: { productName: "device", manufacturerName: "another vendor" },
    disableDiscovery: !encrypted,
  });
  await server.initialize();
  const addressSpace = server.engine.addressSpace;
  const interrupt = () => server.endpoints.forEach((each) => each.abruptlyInterruptChannels());
  const more = build(addressSpace, interrupt) || {};
  server.on("create_session", () => print({ session: "created" }));
  const orders = {
    async cut(milliseconds) {
      interrupt();
      await server.suspendEndPoints();
      print({ cut: true });
      await pause(Number(milliseconds));
      await server.resumeEndPoints();
      print({ cut: false });
    },
    // Drop every subscription; the sessions stay, and their clients are not told.
    unsubscribe() {
      for (const session of Object.values(server.engine._sessions))
        for (const each of [...session.publishEngine.subscriptions]) each.terminate();
      print({ unsubscribed: true });
    },
    // Carry out and answer each method after that time.
    slow(milliseconds) {
      answerMs = Number(milliseconds);
    },
    ...more,
  };
  await server.start();
  print({ listening: true });
  const input = require("readline").createInterface({ input: process.stdin });
  input.on("close", () => process.exit());
  input.on("line", async (line) => {
    const [name, ...words] = line.split(" ");
    try {
      await orders[name](...words);
      print({ ordered: line });
    } catch (error) {
      print({ defect: error.stack });
    }
  });
}

// Bind methods of an object; each function takes the values of the arguments and returns Variants.
function bind(owner, methods) {
  for (const [name, act] of Object.entries(methods)) {
    const method = owner.getMethodByName(name);
    if (!method) throw new Error(`${owner.browseName.toString()} has no method ${name}`);
    method.bindMethod(async (inputs, _context) => {
      try {
        if (answerMs) await pause(answerMs);
        const outputs = await act(...inputs.map((each) => each.value));
        return { statusCode: StatusCodes.Good, outputArguments: outputs };
      } catch (error) {
        print({ defect: error.stack });
        return { statusCode: StatusCodes.BadInternalError };
      }
    });
  }
}

const variant = (dataType, value) => new Variant({ dataType, value });

// Return a concrete type below an abstract event type, and a function that raises it at the Server object.
function eventSource(addressSpace, base, name) {
  const eventType = addressSpace.getOwnNamespace().addEventType({ browseName: name, subtypeOf: base });
  const server = addressSpace.rootFolder.objects.server;
  return (fields) => server.raiseEvent(eventType, fields);
}

module.exports = { DataType, Variant, bind, eventSource, pause, print, serve, variant };
