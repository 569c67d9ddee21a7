// An OPC UA server on an independent stack (node-opcua) with the ByteStrings Small and Large, of 200 kB and 6 MB.
//
//   node large_value.js PORT DIRECTORY
"use strict";

const { serve } = require("./opcua_server.js");
const { DataType, Variant } = require("node-opcua-variant");

serve(process.argv[2], process.argv[3], [], (addressSpace) => {
  for (const [name, size] of [["Small", 200_000], ["Large", 6_000_000]]) {
    addressSpace.getOwnNamespace().addVariable({
      organizedBy: addressSpace.rootFolder.objects,
      browseName: name,
      dataType: "ByteString",
      value: new Variant({ dataType: DataType.ByteString, value: Buffer.alloc(size) }),
    });
  }
});
