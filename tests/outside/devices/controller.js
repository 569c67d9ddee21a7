// A tightening controller (OPC 40450-1) on an independent stack (node-opcua).
//
//   node controller.js PORT DIRECTORY MILLISECONDS [batch|encrypted|lists]     a joining takes so long; DIRECTORY keeps the certificate
//
// With `batch` it also has the methods and orders of joining_batch.js, joins until its batch is complete, and reports
// joint, process and operator. With `lists` it lists its results, and returns each by its id. temporary_file.js has the orders for the files of its results; `points NUMBER` adds the
// curves of torque and angle with so many points each.
// Orders: `cut MILLISECONDS` closes every connection and listens again after that time; `trigger` has the operator
// tighten a bolt of his own at once; `anonymous` leaves the identifiers out of all results from now on. Each of these
// acts once: `quiet` reports no event of the next result; `endAtSearch` lets the next joining run until the identifiers
// are asked for, and end right before that answer; `unanswered` starts the next joining without an answer to its start;
// `hold` lets the next joining run until `end`; `mute` does not answer the next disabling, and `declines NUMBER` declines
// so many of them; `other` has the operator join with another process first, under the same identifiers; `twice` reports a
// second result of the next joining; `reuse` gives the next result the id of the one before. `error` reports an error of the
// controller, and a joining continues. `enable` and `disable` are those of another system, such as a PLC.
"use strict";

const { DataType, bind, eventSource, pause, print, serve, variant } = require("./opcua_server.js");
const { PARTS: BATCH_PARTS, addBatch } = require("./joining_batch.js");
const { serveFiles } = require("./temporary_file.js");
const { resolveNodeId } = require("node-opcua-nodeid");

const RESULT = "http://opcfoundation.org/UA/Machinery/Result/";
const IJT = "http://opcfoundation.org/UA/IJT/Base/";
const MACHINERY = "http://opcfoundation.org/UA/Machinery/";
const MODELS = ["di", "ia", "machinery", "machineryResult", "amb", "ijtBase"];
const PARTS = {
  "AssetManagement.MethodSet": ["EnableAsset", "SendIdentifiers", "GetIdentifiers", "ResetIdentifiers"],
  JoiningProcessManagement: ["StartJoiningProcess", "AbortJoiningProcess", "DeselectJoiningProcess"],
  ResultManagement: ["GetLatestResult", "RequestResults", "AcknowledgeResults", "ResultTransfer"],
};

const LISTING = { ResultManagement: ["GetResultIdListFiltered", "GetResultById"] };
const ERROR_CLASS = 1063;

const [port, directory, duration, mode] = process.argv.slice(2);
const SINGLE = 1;
const SYNC = 2;
const BATCH = 3;
const OK = 1;
const NOT_OK = 2;
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

// It also encodes the fields of the base of a derived structure without optional fields twice.
function dropInherited(schema, base) {
  const inherited = new Set(base.fields.map((each) => each.name));
  schema.fields = schema.fields.filter((each) => !inherited.has(each.name));
}

function build(addressSpace, cut) {
  const [result, ijt, machinery] = [RESULT, IJT, MACHINERY].map((uri) => addressSpace.getNamespaceIndex(uri));
  const make = (namespace, name, fields) =>
    addressSpace.constructExtensionObject(addressSpace.findDataType(name, namespace), fields);
  const metaData = make(ijt, "JoiningResultMetaDataType", { resultId: "" });
  correctMask(metaData.schema, make(result, "ResultMetaDataType", { resultId: "" }).schema);

  dropInherited(make(ijt, "JoiningTraceDataType", {}).schema, make(ijt, "TraceDataType", {}).schema);
  const offered = [PARTS, mode === "batch" ? BATCH_PARTS : {}, mode === "lists" ? LISTING : {}].flatMap(Object.entries);
  const system = addressSpace.findObjectType("JoiningSystemType", ijt).instantiate({
    browseName: "wrench",
    organizedBy: addressSpace.rootFolder.objects.getFolderElementByName("Machines", machinery),
    optionals: offered.flatMap(([part, methods]) => methods.map((each) => `${part}.${each}`)),
  });
  const tell = eventSource(addressSpace, addressSpace.findEventType("JoiningSystemResultReadyEventType", ijt), "Ready");
  const tellError = eventSource(addressSpace, addressSpace.findEventType("JoiningSystemEventType", ijt), "Error");
  const tellAgain = eventSource(addressSpace, addressSpace.findEventType("RequestedResultEventType", ijt), "Requested");
  const state = { enabled: false, identifiers: [], joining: null, number: 0, results: [], anonymous: false, points: 0, declines: 0 };
  const once = new Set();
  const files = serveFiles(addressSpace, system.resultManagement.resultTransfer, cut);
  const series = mode === "batch" ? addBatch(system, (name, fields) => make(ijt, name, fields), status) : null;

  // Assets/Tools/Spindle/Parameters/Enabled, as ToolType has it.
  const namespace = addressSpace.getOwnNamespace();
  const parameters = ["Assets", "Tools", "Spindle", "Parameters"].reduce(
    (parent, browseName) => parent.getComponentByName?.(browseName) || namespace.addObject({ browseName, componentOf: parent }),
    system.assetManagement,
  );
  const enabled = namespace.addVariable({ browseName: "Enabled", componentOf: parameters, dataType: "Boolean" });
  const setEnabled = (value) => {
    state.enabled = value;
    enabled.setValueFromSource(variant(DataType.Boolean, value));
  };
  setEnabled(false);

  const raise = (source, each) => source({ result: { dataType: DataType.ExtensionObject, value: each } });

  function trace() {
    const values = (top) => Array.from({ length: state.points }, (_, n) => (top * n) / state.points);
    const curve = (name, physicalQuantity, top) => ({ name, physicalQuantity, values: values(top) });
    const step = { stepTraceId: "T1", stepResultId: "S1", numberOfTracePoints: state.points, samplingInterval: 1 };
    const stepTraceContent = [curve("Torque", 2, 85.2), curve("Angle", 3, 41.5)];
    return { traceId: "T", resultId: "", stepTraces: [{ ...step, stepTraceContent }] };
  }

  function joining(evaluation) {
    const isGood = evaluation === OK;
    const limits = isGood ? {} : { resultEvaluation: NOT_OK, violationType: 1, lowLimit: 76.5, highLimit: 93.5, targetValue: 85 };
    const torque = { measuredValue: isGood ? 85.2 : 102, name: "Torque", physicalQuantity: 2, valueTag: 1, ...limits };
    const overallResultValues = [make(ijt, "ResultValueDataType", torque)];
    return make(ijt, "JoiningResultDataType", { overallResultValues, ...(state.points ? { trace: trace() } : {}) });
  }

  // Store a result with the identifiers of now and raise its event; `content` are structures.
  function report(process, classification, evaluation, content, program = []) {
    const number = state.results.length + 1;
    const resultId = `N${once.delete("reuse") ? number - 1 : number}`;
    const added = series ? { resultCounters: series.counters() } : {};
    const each = make(result, "ResultDataType", {
      resultMetaData: make(ijt, "JoiningResultMetaDataType", {
        resultId,
        hasTransferableDataOnFile: files.hasFile(),
        isPartial: false,
        creationTime: new Date(),
        resultEvaluation: evaluation,
        sequenceNumber: [0, number],
        name: process,
        classification,
        associatedEntities: state.anonymous ? [] : [...state.identifiers, ...people(), ...program],
        ...added,
      }),
      resultContent: content.map((one) => variant(DataType.ExtensionObject, one)),
    });
    state.results.push(each);
    print({ finished: process, result: resultId, classification, evaluation });
    if (!once.delete("quiet")) raise(tell, each);
    return each;
  }

  function people() {
    const entity = (name, entityId, entityType) => make(ijt, "EntityDataType", { name, entityId, entityType });
    if (!series) return [];
    return [entity("Operator", "Ann", 1), ...(series.batch.joint ? [entity("Joint", series.batch.joint, 23)] : [])];
  }

  function finish(process) {
    if (once.delete("other")) {
      const program = make(ijt, "EntityDataType", { name: "Program", entityId: "front axle 10Nm", entityType: 26 });
      report("front axle 10Nm", SINGLE, NOT_OK, [joining(NOT_OK)], [program]);
    }
    report(process, SINGLE, OK, [joining(OK)]);
    if (once.delete("twice")) report(process, SINGLE, NOT_OK, [joining(NOT_OK)]);
    state.identifiers = [];
  }

  // Join until the batch is complete; a bad joining does not count. Each result of several spindles holds theirs.
  async function joinBatch(process) {
    const { batch } = series;
    const parts = [];
    while (state.joining && batch.counter < batch.size) {
      await pause(Number(duration));
      batch.joined += 1;
      const evaluation = batch.bad.delete(batch.joined) ? NOT_OK : OK;
      if (evaluation === OK) batch.counter += 1;
      const spindles = Array.from({ length: batch.spindles }, () => joining(evaluation));
      if (batch.spindles > 1) {
        const singles = spindles.map((each) => report(process, SINGLE, evaluation, [each]));
        parts.push(report(process, SYNC, evaluation, singles));
      } else parts.push(report(process, SINGLE, evaluation, spindles));
    }
    if (batch.size > 1) report(process, BATCH, OK, batch.isFlat ? [] : parts);
    batch.size = 1;
    batch.counter = 0;
    state.identifiers = [];
    state.joining = null;
  }

  function end() {
    const done = state.joining;
    state.joining = null;
    if (done) finish(done);
  }

  bind(system.assetManagement.methodSet, {
    EnableAsset: (_uri, enable) => {
      if (!enable && state.declines > 0) {
        state.declines -= 1;
        print({ declined: "disable" });
        return status("the tool is busy");
      }
      if (!enable && once.delete("mute")) {
        print({ unanswered: "disable" });
        return new Promise(() => {});
      }
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
      if (series) {
        joinBatch(state.joining);
        return status();
      }
      state.number += 1;
      const { number } = state;
      // An aborted joining does not end the next one.
      const endThis = () => state.number === number && end();
      if (!once.has("endAtSearch") && !once.delete("hold")) pause(Number(duration)).then(endThis);
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
  if (series) {
    bind(system.joiningProcessManagement, {
      StartSelectedJoining: () => {
        if (!state.enabled || state.joining || !series.batch.process) return status("nothing is selected, or the tool is locked");
        state.joining = series.batch.process;
        print({ started: state.joining, joint: series.batch.joint });
        joinBatch(state.joining);
        return status();
      },
    });
  }
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

  if (mode === "lists") {
    const idOf = (each) => each.resultMetaData.resultId;
    bind(system.resultManagement, {
      GetResultIdListFiltered: () => [
        variant(DataType.UInt32, 0),
        variant(DataType.String, state.results.map(idOf)),
        variant(DataType.Int32, 0),
      ],
      GetResultById: (id) => {
        const found = state.results.find((each) => idOf(each) === id) || null;
        return [variant(DataType.UInt32, 0), variant(DataType.ExtensionObject, found), variant(DataType.Int32, found ? 0 : 1)];
      },
    });
  }

  const toggles = ["quiet", "endAtSearch", "unanswered", "hold", "mute", "other", "twice", "reuse"].map((each) => [each, () => once.add(each)]);
  return {
    ...Object.fromEntries(toggles),
    ...files.orders,
    ...(series ? series.orders : {}),
    points(number) {
      state.points = Number(number);
    },
    declines(number) {
      state.declines = Number(number);
    },
    anonymous() {
      state.anonymous = true;
    },
    end,
    error: () =>
      tellError({
        conditionClassId: variant(DataType.NodeId, resolveNodeId(`ns=${ijt};i=${ERROR_CLASS}`)),
        message: variant(DataType.LocalizedText, { text: "the spindle is hot" }),
        severity: variant(DataType.UInt16, 900),
      }),
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

serve(port, directory, MODELS, build, mode === "encrypted").catch((error) => {
  console.error(error);
  process.exit(1);
});
