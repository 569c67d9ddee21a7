// A Machine Vision camera (OPC 40100-1) on an independent stack (node-opcua).
//
//   node camera.js PORT DIRECTORY MILLISECONDS     a job takes so long; DIRECTORY keeps the certificate
//
// It prepares a recipe a while after it has answered PrepareRecipe, and is Ready with the recipe before meanwhile.
// Orders: `cut MILLISECONDS` closes every connection and listens again after that time; `german` shows the texts of its
// states in German from now on; `fail` ends the job by the state Error, and the mode keeps its last state; `stuck` lets
// no Reset lead out of Error any more; `quiet` reports no event of the next result;
// `content BYTES` adds so many bytes to the next result; `partials NUMBER` stores so many partial results before it.
// `nameless` answers the next start without a JobId; `stray` raises a result without any id; `deaf NUMBER` accepts so many stops, and works on. temporary_file.js has the orders for the files of its results.
"use strict";

const { DataType, Variant, bind, eventSource, pause, print, serve, variant } = require("./opcua_server.js");
const { serveFiles } = require("./temporary_file.js");
const { promoteToStateMachine } = require("node-opcua-address-space");
const { VariantArrayType } = require("node-opcua-variant");

const VISION = "http://opcfoundation.org/UA/MachineVision";
const [port, directory, duration] = process.argv.slice(2);
const PREPARE_MS = 200;
const GERMAN = {
  Preoperational: "Betriebsvorbereitung",
  Error: "Fehler",
  Operational: "In Betrieb",
  Initialized: "Initialisiert",
  Ready: "Bereit",
  SingleExecution: "Einzelauftrag",
};

function build(addressSpace, cut) {
  const index = addressSpace.getNamespaceIndex(VISION);
  const make = (name, fields) => addressSpace.constructExtensionObject(addressSpace.findDataType(name, index), fields);
  const id = (name, text) => make(name, { id: text });
  const structure = (value) => variant(DataType.ExtensionObject, value);
  const error = (number) => variant(DataType.Int32, number);

  const system = addressSpace.findObjectType("VisionSystemType", index).instantiate({
    browseName: "camera",
    organizedBy: addressSpace.rootFolder.objects,
    optionals: [
      "VisionStateMachine.SelectModeAutomatic",
      ...["StartSingleJob", "Stop"].map((each) => `VisionStateMachine.AutomaticModeStateMachine.${each}`),
      "RecipeManagement.PrepareRecipe",
      "ResultManagement.GetResultListFiltered",
      "ResultManagement.ResultTransfer",
    ],
  });
  const machine = promoteToStateMachine(system.visionStateMachine);
  const automatic = promoteToStateMachine(machine.automaticModeStateMachine);
  const files = serveFiles(addressSpace, system.resultManagement.resultTransfer, cut);
  const tellResult = eventSource(addressSpace, addressSpace.findEventType("ResultReadyEventType", index), "Ready");
  const tellRecipe = eventSource(addressSpace, addressSpace.findEventType("RecipePreparedEventType", index), "Prepared");
  const state = { recipe: null, jobs: 0, job: null, results: [], german: false, stuck: false, quiet: false, bytes: 0, partials: 0 };

  const enter = (owner, name) => {
    owner.setState(name);
    const text = { locale: "de", text: GERMAN[name] };
    if (state.german) owner.currentState.setValueFromSource(variant(DataType.LocalizedText, text));
  };
  const show = (mode) => {
    enter(machine, "Operational");
    enter(automatic, mode);
  };

  function finish(job) {
    const fields = {
      resultId: id("ResultIdDataType", `R-${job.number}`),
      hasTransferableDataOnFile: files.hasFile(),
      isPartial: false,
      isSimulated: false,
      resultState: 1,
      measId: id("MeasIdDataType", job.measId),
      partId: id("PartIdDataType", job.partId),
      jobId: id("JobIdDataType", `V-${job.number}`),
      creationTime: new Date(),
      resultContent: [variant(DataType.Boolean, true), variant(DataType.String, job.recipe)],
    };
    if (state.bytes) fields.resultContent.push(variant(DataType.ByteString, Buffer.alloc(state.bytes)));
    const ids = { internalRecipeId: id("RecipeIdInternalDataType", job.recipe), internalConfigurationId: id("ConfigurationIdDataType", "") };
    for (let number = 1; number <= state.partials; number += 1) {
      const partial = { ...fields, ...ids, resultId: id("ResultIdDataType", `R-${job.number}-${number}`), isPartial: true };
      state.results.push({ measId: job.measId, result: make("ResultDataType", partial) });
    }
    state.results.push({ measId: job.measId, result: make("ResultDataType", { ...fields, ...ids }) });
    state.bytes = state.partials = 0;
    print({ finished: job.measId, recipe: job.recipe });
    show("Ready");
    const types = { hasTransferableDataOnFile: DataType.Boolean, isPartial: DataType.Boolean, isSimulated: DataType.Boolean, resultState: DataType.Int32, creationTime: DataType.DateTime };
    const told = Object.entries(fields).map(([name, value]) => [
      name,
      name === "resultContent"
        ? new Variant({ dataType: DataType.Variant, arrayType: VariantArrayType.Array, value })
        : variant(types[name] ?? DataType.ExtensionObject, value),
    ]);
    if (!state.quiet) tellResult(Object.fromEntries(told));
    state.quiet = false;
  }

  bind(machine, {
    Reset: () => {
      print({ reset: true });
      if (!state.stuck) enter(machine, "Preoperational");
      return [error(0)];
    },
    SelectModeAutomatic: () => {
      show("Initialized");
      return [error(0)];
    },
  });
  bind(system.recipeManagement, {
    PrepareRecipe: (external) => {
      print({ asked: external.id });
      show("Ready");
      pause(PREPARE_MS).then(() => {
        state.recipe = external.id;
        print({ prepared: external.id });
        tellRecipe({ externalId: structure(external) });
      });
      return [structure(id("RecipeIdInternalDataType", external.id)), variant(DataType.Boolean, false), error(0)];
    },
  });
  bind(automatic, {
    StartSingleJob: (measId, partId) => {
      if (state.job) return [structure(null), error(1)];
      state.jobs += 1;
      state.job = { number: state.jobs, measId: measId.id, partId: partId.id, recipe: state.recipe };
      print({ started: measId.id, recipe: state.recipe });
      show("SingleExecution");
      pause(Number(duration)).then(() => {
        const job = state.job;
        state.job = null;
        if (job) finish(job);
      });
      const answer = state.nameless ? null : id("JobIdDataType", `V-${state.jobs}`);
      state.nameless = false;
      return [structure(answer), error(0)];
    },
    Stop: () => {
      if (state.deaf > 0) {
        state.deaf -= 1;
        print({ ignored: "stop" });
        return [error(0)];
      }
      print({ stopped: state.job && state.job.measId });
      state.job = null;
      show("Ready");
      return [error(0)];
    },
  });
  bind(system.resultManagement, {
    GetResultListFiltered: (_state, measId, ...rest) => {
      const [most, start] = rest.slice(-3);
      const all = state.results.filter((each) => each.measId === measId.id).map((each) => each.result);
      const found = all.slice(start, most ? start + most : undefined);
      return [
        variant(DataType.Boolean, start + found.length === all.length),
        variant(DataType.UInt32, found.length),
        variant(DataType.UInt32, 0),
        variant(DataType.ExtensionObject, found),
        error(0),
      ];
    },
  });
  machine.setState("Preoperational");
  return {
    ...files.orders,
    german() {
      state.german = true;
      enter(machine, "Preoperational");
    },
    fail() {
      state.job = null;
      enter(machine, "Error");
    },
    quiet() {
      state.quiet = true;
    },
    content(bytes) {
      state.bytes = Number(bytes);
    },
    partials(number) {
      state.partials = Number(number);
    },
    nameless() {
      state.nameless = true;
    },
    stray() {
      tellResult({ isPartial: variant(DataType.Boolean, false), resultState: variant(DataType.Int32, 1) });
    },
    stuck() {
      state.stuck = true;
    },
    deaf(number) {
      state.deaf = Number(number);
    },
  };
}

serve(port, directory, ["machineVision"], build).catch((defect) => {
  console.error(defect);
  process.exit(1);
});
