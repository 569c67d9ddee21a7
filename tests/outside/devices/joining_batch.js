// Batches, counters, joints and lists of a tightening controller on an independent stack (node-opcua): the methods of
// JoiningProcessManagement and JointManagement (OPC 40450-1, 7.3 and 7.5) by which a client sets up a batch.
//
// The controller has the processes WHEEL-120 (name "wheel 120Nm") and AXLE-85, and the joints B1 (WHEEL-120) and B2
// (AXLE-85). Orders: `nok NUMBER` makes the joining of that number, from now on, a bad one; `spindles NUMBER` joins with
// so many spindles at once (classification SYNC); `flat` leaves the joinings out of the result of a batch.
"use strict";

const { DataType, bind, print, variant } = require("./opcua_server.js");

const PARTS = {
  JoiningProcessManagement: [
    "GetJoiningProcessList",
    "SelectJoiningProcess",
    "StartSelectedJoining",
    "SetJoiningProcessSize",
    "SetJoiningProcessCounter",
    "IncrementJoiningProcessCounter",
    "DecrementJoiningProcessCounter",
    "ResetJoiningProcess",
  ],
  JointManagement: ["GetJointList", "SelectJoint"],
};
const JOINTS = { B1: "WHEEL-120", B2: "AXLE-85" };
const SIZE = 2;
const COUNT = 3;

// Return the state of the batch and the orders that change it.
function addBatch(system, make, status) {
  const batch = { size: 1, counter: 0, joined: 0, bad: new Set(), spindles: 1, isFlat: false, joint: null, process: null };
  const processes = [
    { joiningProcessId: "WHEEL-120", joiningProcessOriginId: "origin-1", name: "wheel 120Nm" },
    { joiningProcessId: "AXLE-85", joiningProcessOriginId: "origin-2", name: "axle 85Nm" },
  ];
  const knows = (process) =>
    !process.joiningProcessId ||
    processes.some((each) => [each.joiningProcessId, each.name].includes(process.joiningProcessId));
  const counting = (name, count) => (_uri, process, number) => {
    if (!knows(process)) return status(`there is no process ${process.joiningProcessId}`);
    batch.counter = Math.max(0, count(number));
    print({ [name]: number, counter: batch.counter });
    return status();
  };
  bind(system.joiningProcessManagement, {
    GetJoiningProcessList: () => [
      variant(DataType.ExtensionObject, processes.map((each) => make("JoiningProcessMetaDataType", each))),
      ...status(),
    ],
    SelectJoiningProcess: (_uri, process) => {
      batch.process = process.joiningProcessId;
      print({ selected: batch.process });
      return status(knows(process) ? "" : `there is no process ${batch.process}`);
    },
    SetJoiningProcessSize: (_uri, process, size) => {
      print({ size, of: process.joiningProcessId });
      if (!size) return status("a batch has at least one joining");
      batch.size = size;
      return status();
    },
    SetJoiningProcessCounter: counting("set", (number) => number),
    IncrementJoiningProcessCounter: counting("incremented", (number) => batch.counter + number),
    DecrementJoiningProcessCounter: counting("decremented", (number) => batch.counter - number),
    ResetJoiningProcess: () => {
      batch.counter = 0;
      print({ batchReset: true });
      return status();
    },
  });
  bind(system.jointManagement, {
    GetJointList: () => [
      variant(DataType.ExtensionObject, Object.keys(JOINTS).map((jointId) => make("JointDataType", { jointId, jointOriginId: `CAD-${jointId}` }))),
      ...status(),
    ],
    SelectJoint: (_uri, joint, origin) => {
      const id = joint || Object.keys(JOINTS).find((each) => origin === `CAD-${each}`);
      if (!(id in JOINTS)) return status(`there is no joint ${joint}`);
      batch.joint = id;
      batch.process = JOINTS[id];
      print({ joint: id });
      return status();
    },
  });
  return {
    batch,
    counters: () => [
      make("ResultCounterDataType", { counterType: SIZE, counterValue: batch.size }),
      make("ResultCounterDataType", { counterType: COUNT, counterValue: batch.counter }),
    ],
    orders: {
      nok(number) {
        batch.bad.add(batch.joined + Number(number));
      },
      spindles(number) {
        batch.spindles = Number(number);
      },
      flat() {
        batch.isFlat = true;
      },
    },
  };
}

module.exports = { PARTS, addBatch };
