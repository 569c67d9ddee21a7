// The page on which a draft is released: another person may release it first.

import { Ended } from "./ended.js";

const banner = document.getElementById("ended");
const { id, scope, master } = banner.dataset;

new Ended(
  () => ({ id, scope, work_master: master }),
  ({ draft }) => location.assign(`/recipe-draft?draft=${encodeURIComponent(draft.id)}`),
);
