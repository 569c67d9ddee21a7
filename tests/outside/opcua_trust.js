// An OPC UA client on an independent stack (node-opcua) that trusts one certificate of a server, and nothing else.
//
//   node opcua_trust.js ENDPOINT FOLDER TRUSTED
//
// FOLDER has its certificate own.der and its key own.pem; TRUSTED is a file with the certificate. It prints one line of
// JSON: whether the certificate that the server offers names the host of ENDPOINT (by the check of Node.js), and "good"
// or the reason why there is no encrypted session.
"use strict";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
console.log = console.warn = console.error;

const { X509Certificate } = require("node:crypto");
const { mkdtempSync, readFileSync } = require("node:fs");
const { isIP } = require("node:net");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");
const { MessageSecurityMode, OPCUAClient, SecurityPolicy } = require("node-opcua-client");

const newClient = (options = {}) => OPCUAClient.create({
  endpointMustExist: false,
  connectionStrategy: { maxRetry: 0 },
  transportTimeout: 20000,
  ...options,
});

async function offered(endpoint) {
  const client = newClient();
  await client.connect(endpoint);
  const [first] = await client.getEndpoints();
  await client.disconnect();
  return new X509Certificate(first.serverCertificate);
}

async function session(endpoint, folder, trusted) {
  const manager = new OPCUACertificateManager({ rootFolder: mkdtempSync(`${folder}/pki-`), automaticallyAcceptUnknownCertificate: false });
  await manager.initialize();
  await manager.trustCertificate(readFileSync(trusted));
  const client = newClient({
    applicationUri: "urn:example:client",
    certificateFile: `${folder}/own.der`,
    privateKeyFile: `${folder}/own.pem`,
    clientCertificateManager: manager,
    securityMode: MessageSecurityMode.SignAndEncrypt,
    securityPolicy: SecurityPolicy.Basic256Sha256,
  });
  try {
    await client.withSessionAsync(endpoint, (opened) => opened.readNamespaceArray());
    return "good";
  } catch (error) {
    return error.message;
  }
}

async function main([endpoint, folder, trusted]) {
  const host = new URL(endpoint.replace("opc.tcp:", "http:")).hostname;
  const certificate = await offered(endpoint);
  const names = Boolean(isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host));
  print({ names, session: await session(endpoint, folder, trusted) });
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => { process.stderr.write(`${error.stack}\n`); process.exit(1); },
);
