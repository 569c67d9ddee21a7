// Ranks the results of a search of the site: pages whose name has a word of the query, then how-to pages; decisions last.
var Scorer = {
  score: function (result) {
    const page = result[0], words = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\W+/);
    if (/^(docs\/decisions\/|docs\/reference\/promises|CHANGELOG)/.test(page)) return result[4] - 10;
    const named = words.some((word) => word.length > 2 && page.split("/").pop().includes(word));
    return result[4] + (named ? 20 : 0) + (page.startsWith("docs/how-to/") ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
