// A client from another vendor (node-nutrunner-open-library): runs one tightening at the port of the first argument,
// and prints what it has seen, one JSON line for each event.
'use strict';
const { OpenProtocolNutrunner } = require('node-nutrunner-open-library');

const client = new OpenProtocolNutrunner({
  host: '127.0.0.1', port: Number(process.argv[2]), brand: 'simulator', autoReconnect: false,
});
const log = (what, data = {}) => process.stdout.write(`${JSON.stringify({ what, ...data })}\n`);
const once = (event) => new Promise((resolve) => client.once(event, resolve));

for (const event of ['linkEstablished', 'revisionNegotiated', 'revisionNegotiationFailed', 'frameError', 'parseError']) {
  client.on(event, (data) => log(event, data));
}
client.on('error', (error) => log('error', { message: error.message }));

async function main() {
  const negotiated = once('revisionNegotiated');
  await client.connect();
  await negotiated;
  const result = once('spindleResult');
  log('enabled', await client.enableTool());
  log('result', await result);
  log('disabled', await client.disableTool());
  const alarm = once('alarm');
  await client.sendMID(70, '', true);
  log('subscribed');
  log('alarm', { code: (await alarm).alarmCode });
  for (const mid of [78, 73, 63, 100, 103]) {
    await client.sendMID(mid, '', true);
    log('accepted', { mid });
  }
  client.disconnect();
  log('end');
}

main().catch((error) => { log('failed', { message: error.message }); process.exitCode = 1; });
