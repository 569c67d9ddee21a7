// Files of results on an independent stack (node-opcua): ResultTransfer with GenerateFileForRead (OPC 10000-20, 4.4).
//
// Orders: `image BYTES` offers an image of so many bytes with each result from now on, 0 offers none. `filefault NAME`
// changes how files are served: `none`; `late` generates a file after its answer, `broken` fails at that; `away` has no
// file; `nowhere` names no node; `endless` sends without an end; `short` sends less than it announces; `fat` sends more
// at once than asked; `slow` answers no Read; `unclosed` declines Close; `cut` breaks the connection at each Read.
"use strict";

const crypto = require("crypto");
const { promoteToStateMachine } = require("node-opcua-address-space");
const { NodeId } = require("node-opcua-nodeid");
const { VariantArrayType } = require("node-opcua-variant");
const { DataType, Variant, pause, print, variant } = require("./opcua_server.js");
const { StatusCodes } = require("node-opcua-status-code");

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const LATE_MS = 400;

function content(bytes) {
  const image = Buffer.alloc(bytes);
  for (let n = 0; n < bytes; n += 4096) crypto.createHash("sha512").update(String(n)).digest().copy(image, n);
  PNG.copy(image);
  return image;
}

// Serve the files of `transfer`; return its orders, and whether a result has a file. `cut` breaks every connection.
function serveFiles(addressSpace, transfer, cut) {
  const own = addressSpace.getOwnNamespace();
  const state = { bytes: 0, fault: "none", files: 0 };

  function open(image) {
    state.files += 1;
    const number = state.files;
    const file = addressSpace.findObjectType("FileType").instantiate({ browseName: `file ${number}`, componentOf: transfer });
    const set = (name, dataType, value) =>
      file[name].setValueFromSource(new Variant({ dataType, arrayType: VariantArrayType.Scalar, value }));
    set("size", DataType.UInt64, [0, state.fault === "short" ? image.length + 1000 : image.length]);
    set("writable", DataType.Boolean, false);
    set("userWritable", DataType.Boolean, false);
    set("openCount", DataType.UInt16, 1);
    let position = 0;
    let isReady = true;
    bindRaw(file, "Read", async ([handle, length]) => {
      if (handle !== number) return { statusCode: StatusCodes.BadInvalidArgument };
      if (!isReady) return { statusCode: StatusCodes.BadInvalidState };
      if (state.fault === "slow") await new Promise(() => {});
      if (state.fault === "cut") cut();
      if (state.fault === "endless") return data(image.subarray(0, length));
      const most = state.fault === "fat" ? length + 1 : length;
      const part = image.subarray(position, position + most);
      position += part.length;
      return data(part);
    });
    bindRaw(file, "Close", async ([handle]) => {
      print({ closed: handle });
      if (state.fault === "unclosed") return { statusCode: StatusCodes.BadUserAccessDenied };
      addressSpace.deleteNode(file);
      return { statusCode: StatusCodes.Good, outputArguments: [] };
    });
    return { file, number, ready: (is) => (isReady = is) };
  }

  const data = (part) => ({ statusCode: StatusCodes.Good, outputArguments: [variant(DataType.ByteString, part)] });

  function machineOf(opened) {
    const machine = promoteToStateMachine(
      addressSpace.findObjectType("FileTransferStateMachineType").instantiate({
        browseName: `transfer ${opened.number}`,
        componentOf: transfer,
      })
    );
    machine.setState("ReadPrepare");
    opened.ready(false);
    pause(LATE_MS).then(() => {
      opened.ready(true);
      machine.setState(state.fault === "broken" ? "Error" : "ReadTransfer");
    });
    return machine;
  }

  bindRaw(transfer, "GenerateFileForRead", async ([options]) => {
    print({ generated: (options.id && options.id.id) || options.resultId });
    if (state.fault === "away") return { statusCode: StatusCodes.BadNotFound };
    const image = content(state.bytes);
    const opened = open(image);
    const machine = ["late", "broken"].includes(state.fault) ? machineOf(opened) : null;
    print({ sha256: crypto.createHash("sha256").update(image).digest("hex") });
    return {
      statusCode: StatusCodes.Good,
      outputArguments: [
        variant(DataType.NodeId, state.fault === "nowhere" ? NodeId.nullNodeId : opened.file.nodeId),
        variant(DataType.UInt32, opened.number),
        variant(DataType.NodeId, machine ? machine.nodeId : NodeId.nullNodeId),
      ],
    };
  });

  return {
    hasFile: () => state.bytes > 0,
    orders: {
      image(bytes) {
        state.bytes = Number(bytes);
      },
      filefault(name) {
        state.fault = name;
      },
    },
  };
}

function bindRaw(owner, name, act) {
  owner.getMethodByName(name).bindMethod(async (inputs, _context) => {
    try {
      return await act(inputs.map((each) => each.value));
    } catch (error) {
      print({ defect: error.stack });
      return { statusCode: StatusCodes.BadInternalError };
    }
  });
}

module.exports = { serveFiles };
