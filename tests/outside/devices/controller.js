// A tightening controller (OPC 40450-1) on an independent stack (node-opcua).
//
//   node controller.js PORT DIRECTORY MILLISECONDS     a joining takes so long; DIRECTORY keeps the certificate
//
// Orders: `cut MILLISECONDS` closes every connection and listens again after that time; `trigger` has the operator
// tighten a bolt of his own at once; `anonymous` leaves the identifiers out of all results from now on. Each of these
// acts once: `quiet` reports no event of the next result; `endAtSearch` lets the next joining run until the identifiers
// are asked for, and end right before that answer; `unanswered` starts the next joining without an answer to its start;
// `hold` lets the next joining run until `end`. `enable` and `disable` are those of another system, such as a PLC.
"use strict";

const { DataType, bind, eventSource, pause, print, serve, variant } = require("./opcua_server.js");

const RESULT = "http://opcfoundation.org/UA/Machinery/Result/";
const IJT = "http://opcfoundation.org/UA/IJT/Base/";
const MACHINERY = "http://opcfoundation.org/UA/Machinery/";
const MODELS = ["di", "ia", "machinery", "machineryResult", "amb", "ijtBase"];
const PARTS = {
  "AssetManagement.MethodSet": ["EnableAsset", "SendIdentifiers", "GetIdentifiers", "ResetIdentifiers"],
  JoiningProcessManagement: ["StartJoiningProcess", "AbortJoiningProcess", "DeselectJoiningProcess"],
  ResultManagement: ["GetLatestResult", "RequestResults", "AcknowledgeResults"],
};

const [port, directory, duration] = process.argv.slice(2);
const status = (message = "") => [
  variant(DataType.Int64, message ? 1 : 0),
  variant(DataType.LocalizedText, { text: message || "done" }),
];

// node-opcua numbers the optional fields of a derived structure from the count of all fields of its base, those that
// are not optional included; OPC 10000-6, 5.2.7 counts the optional ones.
function correctMask(schema, base) {
  const surplus = base.fields.filter((each) => each.switchBit === undefined).length;
  for (const each of schema.fields) if (each.switchBit !== undefined) each.switchBit -= surplus;
}

function build(addressSpace) {
  const [result, ijt, machinery] = [RESULT, IJT, MACHINERY].map((uri) => addressSpace.getNamespaceIndex(uri));
  const make = (namespace, name, fields) =>
    addressSpace.constructExtensionObject(addressSpace.findDataType(name, namespace), fields);
  const metaData = make(ijt, "JoiningResultMetaDataType", { resultId: "" });
  correctMask(metaData.schema, make(result, "ResultMetaDataType", { resultId: "" }).schema);

  const system = addressSpace.findObjectType("JoiningSystemType", ijt).instantiate({
    browseName: "wrench",
    organizedBy: addressSpace.rootFolder.objects.getFolderElementByName("Machines", machinery),
    optionals: Object.entries(PARTS).flatMap(([part, methods]) => methods.map((each) => `${part}.${each}`)),
  });
  const tell = eventSource(addressSpace, addressSpace.findEventType("JoiningSystemResultReadyEventType", ijt), "Ready");
  const tellAgain = eventSource(addressSpace, addressSpace.findEventType("RequestedResultEventType", ijt), "Requested");
  const state = { enabled: false, identifiers: [], joining: null, results: [], anonymous: false };
  const once = new Set();

  // Assets/Tools/Spindle/Parameters/Enabled, as ToolType has it.
  const own = addressSpace.getOwnNamespace();
  const parameters = ["Assets", "Tools", "Spindle", "Parameters"].reduce(
    (parent, browseName) => parent.getComponentByName?.(browseName) || own.addObject({ browseName, componentOf: parent }),
    system.assetManagement,
  );
  const enabled = own.addVariable({ browseName: "Enabled", componentOf: parameters, dataType: "Boolean" });
  const setEnabled = (value) => {
    state.enabled = value;
    enabled.setValueFromSource(variant(DataType.Boolean, value));
  };
  setEnabled(false);

  const raise = (source, each) => source({ result: { dataType: DataType.ExtensionObject, value: each } });

  function finish(process) {
    const number = state.results.length + 1;
    const torque = make(ijt, "ResultValueDataType", { measuredValue: 85.2, name: "Torque", physicalQuantity: 2, valueTag: 1 });
    const each = make(result, "ResultDataType", {
      resultMetaData: make(ijt, "JoiningResultMetaDataType", {
        resultId: `N${number}`,
        isPartial: false,
        creationTime: new Date(),
        resultEvaluation: 1,
        sequenceNumber: [0, number],
        name: process,
        classification: 1,
        associatedEntities: state.anonymous ? [] : state.identifiers,
      }),
      resultContent: [variant(DataType.ExtensionObject, make(ijt, "JoiningResultDataType", { overallResultValues: [torque] }))],
    });
    state.identifiers = [];
    state.results.push(each);
    print({ finished: process, result: `N${number}` });
    if (!once.delete("quiet")) raise(tell, each);
  }

  function end() {
    const done = state.joining;
    state.joining = null;
    if (done) finish(done);
  }

  bind(system.assetManagement.methodSet, {
    EnableAsset: (_uri, enable) => {
      setEnabled(enable);
      print({ enabled: enable });
      return status();
    },
    SendIdentifiers: (_uri, entities) => {
      state.identifiers = entities || [];
      print({ identifiers: state.identifiers.map((each) => `${each.name}=${each.entityId}`) });
      return status();
    },
    GetIdentifiers: () => {
      if (state.joining && once.delete("endAtSearch")) end();
      return [variant(DataType.ExtensionObject, state.identifiers), ...status()];
    },
    ResetIdentifiers: () => {
      state.identifiers = [];
      return status();
    },
  });
  bind(system.joiningProcessManagement, {
    StartJoiningProcess: (_uri, process) => {
      if (!state.enabled || state.joining) return status(state.joining ? "a joining is at work" : "the tool is locked");
      state.joining = process.joiningProcessId;
      print({ started: state.joining });
      if (!once.has("endAtSearch") && !once.delete("hold")) pause(Number(duration)).then(end);
      return once.delete("unanswered") ? new Promise(() => {}) : status();
    },
    AbortJoiningProcess: () => {
      print({ aborted: state.joining });
      const running = state.joining;
      state.joining = null;
      return status(running ? "" : "no joining is at work");
    },
    DeselectJoiningProcess: () => status(),
  });
  bind(system.resultManagement, {
    GetLatestResult: () => {
      const latest = state.results.at(-1) || null;
      return [variant(DataType.UInt32, 0), variant(DataType.ExtensionObject, latest), variant(DataType.Int32, latest ? 0 : 1)];
    },
    RequestResults: (first, last) => {
      const asked = state.results.slice(Math.max(0, first[1] - 1), last[1]);
      print({ requested: asked.length });
      for (const each of asked) raise(tellAgain, each);
      return [variant(DataType.Double, 0), ...status()];
    },
    AcknowledgeResults: (ids) => {
      for (const id of ids) print({ acknowledged: id });
      return [variant(DataType.Int32, []), variant(DataType.Int32, 0)];
    },
  });

  const toggles = ["quiet", "endAtSearch", "unanswered", "hold"].map((each) => [each, () => once.add(each)]);
  return {
    ...Object.fromEntries(toggles),
    anonymous() {
      state.anonymous = true;
    },
    end,
    enable: () => setEnabled(true),
    disable: () => setEnabled(false),
    trigger() {
      const { identifiers } = state;
      state.identifiers = [];
      print({ triggered: true });
      finish("by hand");
      state.identifiers = identifiers;
    },
  };
}

serve(port, directory, MODELS, build).catch((error) => {
  console.error(error);
  process.exit(1);
});
