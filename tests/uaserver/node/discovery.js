// A local discovery server on node-opcua: prints a line of JSON with the servers that it knows, whenever they change.
// Arguments: its port, the folder of its certificates, a file whose certificate it trusts.
"use strict";
const { OPCUADiscoveryServer } = require("node-opcua-server-discovery");
const { OPCUACertificateManager } = require("node-opcua-certificate-manager");
const fs = require("fs");
const [port, folder, theirs] = process.argv.slice(2);

(async () => {
  const serverCertificateManager = new OPCUACertificateManager({ rootFolder: folder });
  await serverCertificateManager.initialize();
  if (theirs) await serverCertificateManager.trustCertificate(fs.readFileSync(theirs));
  const server = new OPCUADiscoveryServer({ port: Number(port), serverCertificateManager });
  await server.start();
  fs.writeFileSync(`${folder}/lds.der`, server.getCertificate());
  let shown = "";
  setInterval(() => {
    const known = Object.values(server.registeredServers instanceof Map ? Object.fromEntries(server.registeredServers) : server.registeredServers || {});
    const line = JSON.stringify({
      servers: known.map((each) => ({
        uri: each.serverUri,
        product: each.productUri,
        urls: each.discoveryUrls,
        online: each.isOnline,
        mdns: (each.discoveryConfiguration || []).map((one) => ({ name: one.mdnsServerName, capabilities: one.serverCapabilities })),
      })),
    });
    if (line !== shown) process.stdout.write((shown = line) + "\n");
  }, 20);
})();
