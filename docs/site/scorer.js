// Ranks the results of a search of the site: how-to pages first, decisions and the list of changes last.
var Scorer = {
  score: function (result) {
    const page = result[0], score = result[4];
    if (page.startsWith("docs/how-to/")) return score + 10;
    return /^(docs\/decisions\/|docs\/reference\/promises|CHANGELOG)/.test(page) ? score - 10 : score;
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
