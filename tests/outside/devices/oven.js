// An oven with two variables on an independent stack (node-opcua).
//
//   node oven.js PORT DIRECTORY ENCRYPTED     DIRECTORY keeps the certificate; 1 is encrypted, 0 is not
//
// Orders: `set VALUE [STATUS]` writes the temperature with the name of a StatusCode, `cut MILLISECONDS` closes every
// connection and listens again after that time.
"use strict";

const { DataType, print, serve } = require("./opcua_server.js");
const { StatusCodes } = require("node-opcua-status-code");

const [port, directory, encrypted] = process.argv.slice(2);
let temperature;

function build(addressSpace) {
  const own = addressSpace.registerNamespace("urn:oven");
  const oven = own.addObject({ organizedBy: addressSpace.rootFolder.objects, browseName: "Oven", nodeId: "s=Oven" });
  const variable = (name, dataType, value) =>
    own.addVariable({ componentOf: oven, browseName: name, nodeId: `s=${name}`, dataType, value: { dataType, value } });
  temperature = variable("Temperature", DataType.Double, 20);
  variable("State", DataType.String, "idle");
  return {
    async set(value, status) {
      temperature.setValueFromSource({ dataType: DataType.Double, value: Number(value) }, StatusCodes[status || "Good"]);
      print({ set: value });
    },
  };
}

serve(port, directory, [], build, encrypted === "1");
