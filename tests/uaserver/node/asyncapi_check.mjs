// Parse an AsyncAPI document and print each finding of the AsyncAPI Initiative's parser as JSON: node asyncapi_check.mjs FILE
import { createRequire } from "node:module";

const { Parser, fromFile } = createRequire(`${process.cwd()}/`)("@asyncapi/parser");
const { document, diagnostics } = await fromFile(new Parser(), process.argv[2]).parse();
const operations = document ? document.operations().all().map((each) => each.id()) : [];
const findings = diagnostics.map(({ severity, code, path, message }) => ({ severity, code, path: path.join("."), message }));
console.log(JSON.stringify({ operations, findings }));
