// Decodes and encodes payloads with the npm package sparkplug-payload: reads lines {"decode": base64} or
// {"encode": payload}, and prints the payload, or its bytes as base64.
"use strict";
const payloads = require("sparkplug-payload").get("spBv1.0");

const plain = (_name, value) =>
  value && typeof value === "object" && typeof value.toString === "function" && "unsigned" in value
    ? value.toString()
    : value;
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (text) => {
    const { decode, encode } = JSON.parse(text);
    const answer = decode
      ? payloads.decodePayload(Buffer.from(decode, "base64"))
      : Buffer.from(payloads.encodePayload(encode)).toString("base64");
    process.stdout.write(JSON.stringify(answer, plain) + "\n");
  })
  .on("close", () => process.exit(0));
