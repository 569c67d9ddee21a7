// Shows that the gateway is away: what is on the page is no longer of now, and its lamps are grey.

const root = document.documentElement;
const banner = document.getElementById("offline");
const why = banner.querySelector(".why");
const unconnected = why.textContent;
const SILENT_MS = 12_000;
const timeOfDay = new Intl.DateTimeFormat(root.lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

let follows = false;
let isLost = false;
let heard = Date.now();
// The last instant at which the page was true.
let asOf = Date.now();

function show() {
  const isAway = isLost || (follows && !document.hidden && Date.now() - heard > SILENT_MS);
  if (isAway === !banner.hidden) return;
  banner.hidden = !isAway;
  root.toggleAttribute("data-away", isAway);
  for (const time of isAway ? document.querySelectorAll(".as-of time") : []) time.textContent = timeOfDay.format(asOf);
}

// The gateway has answered, or its stream of changes has sent something.
addEventListener("heard", () => {
  heard = Date.now();
  isLost = false;
  asOf = heard;
  show();
});
// The connection has ended, or the gateway cannot read its store: then it has said why work waits.
addEventListener("lost", ({ detail }) => {
  isLost = true;
  why.textContent = detail ?? unconnected;
  show();
});
// The stream says that the connection works; a page that could not be read is still old.
addEventListener("quiet", () => {
  heard = Date.now();
  if (!isLost) asOf = heard;
  show();
});
addEventListener("follows", ({ detail }) => {
  follows = detail;
  heard = Date.now();
});
setInterval(show, 1000);

// A page of a store that is away opens as soon as it can be read. The gateway may close its port meanwhile: a page that
// loaded itself then would stay the error page of the browser.
async function reopen() {
  const answer = await fetch(location.href).catch(() => undefined);
  if (answer && answer.status !== 503) location.reload();
  else setTimeout(reopen, 3000);
}
if (document.querySelector("[data-waits]")) setTimeout(reopen, 3000);
